// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/gather_elements.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <class T>
struct GatherElementsOfAll {
  std::span<GatherElements<T> const> lists;
};
struct ScatterElementsOfAll {
  std::span<ScatterElements const> lists;
};

template <Space S, class T>
void run(Exec<S> ex, GatherElementsOfAll<T> const& all) {
  for ([[maybe_unused]] auto const& g : all.lists) GPUPS_ASSERT(g.to.size() >= g.positions.size());
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](GatherElements<T> const& g) { return g.positions.size(); });
  each_item(ex, list.segments(),
            [] GPUPS_FN(GatherElements<T> const& g, std::size_t i) { g.to[i] = g.from[g.positions[i]]; });
}

template <Space S>
void run(Exec<S> ex, ScatterElementsOfAll const& all) {
  for ([[maybe_unused]] auto const& s : all.lists) GPUPS_ASSERT(s.from.size() >= s.positions.size());
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](ScatterElements const& s) { return s.positions.size(); });
  each_item(ex, list.segments(),
            [] GPUPS_FN(ScatterElements const& s, std::size_t i) { s.to[s.positions[i]] = s.from[i]; });
}

GPUPS_KERNEL(gather_elements_of_all, GatherElementsOfAll<Key>)
GPUPS_KERNEL(gather_elements_of_all, GatherElementsOfAll<std::uint32_t>)
GPUPS_KERNEL(scatter_elements_of_all, ScatterElementsOfAll)

#ifndef __CUDACC__
void gather_elements(Stream& stream, std::span<GatherElements<Key> const> lists) {
  gather_elements_of_all(stream, {lists});
}
void gather_elements(Stream& stream, std::span<GatherElements<std::uint32_t> const> lists) {
  gather_elements_of_all(stream, {lists});
}
void scatter_elements(Stream& stream, std::span<ScatterElements const> lists) {
  scatter_elements_of_all(stream, {lists});
}
#endif

// Rows with fewer elements are copied by element, others by row.
constexpr std::size_t kWideRow = 8;

template <Space S, class T>
void run(Exec<S> ex, GatherStored<T> const& g) {
  std::size_t const stride = g.rows.stride;
  if (stride == 0) return;
  if (stride < kWideRow) {
    return each(ex, g.ids.size() * stride,
                [g, stride] GPUPS_FN(std::size_t i) { g.out[i] = g.rows.row(g.ids[i / stride])[i % stride]; });
  }
  each_row(ex, g.ids.size(), [g, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    T const* const from = g.rows.row(g.ids[i]);
    lanes.each(stride, [&](std::size_t j) { g.out[i * stride + j] = from[j]; });
  });
}

template <Space S, class T>
void run(Exec<S> ex, ScatterStored<T> const& s) {
  std::size_t const stride = s.rows.stride;
  if (stride == 0) return;
  if (stride < kWideRow) {
    return each(ex, s.ids.size() * stride,
                [s, stride] GPUPS_FN(std::size_t i) { s.rows.row(s.ids[i / stride])[i % stride] = s.from[i]; });
  }
  each_row(ex, s.ids.size(), [s, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    T* const to = s.rows.row(s.ids[i]);
    lanes.each(stride, [&](std::size_t j) { to[j] = s.from[i * stride + j]; });
  });
}

GPUPS_KERNEL(gather_stored, GatherStored<float>)
GPUPS_KERNEL(gather_stored, GatherStored<std::uint32_t>)
GPUPS_KERNEL(gather_stored, GatherStored<std::uint64_t>)
GPUPS_KERNEL(scatter_stored, ScatterStored<float>)
GPUPS_KERNEL(scatter_stored, ScatterStored<std::uint32_t>)

}  // namespace gpups::kernels
