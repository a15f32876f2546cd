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

struct CopyWordsOfAll {
  std::span<CopyWords const> lists;
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

template <Space S>
void run(Exec<S> ex, CopyWordsOfAll const& all) {
  for ([[maybe_unused]] auto const& c : all.lists) GPUPS_ASSERT(c.to.size() >= c.from.size());
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](CopyWords const& c) { return c.from.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CopyWords const& c, std::size_t i) { c.to[i] = c.from[i]; });
}

GPUPS_KERNEL(gather_elements_of_all, GatherElementsOfAll<Key>)
GPUPS_KERNEL(gather_elements_of_all, GatherElementsOfAll<std::uint32_t>)
GPUPS_KERNEL(scatter_elements_of_all, ScatterElementsOfAll)
GPUPS_KERNEL(copy_words_of_all, CopyWordsOfAll)

#ifndef __CUDACC__
void gather_elements(Stream& stream, std::span<GatherElements<Key> const> lists) {
  gather_elements_of_all(stream, {lists});
}
void gather_elements(Stream& stream, std::span<GatherElements<std::uint32_t> const> lists) {
  gather_elements_of_all(stream, {lists});
}
void copy_words(Stream& stream, std::span<CopyWords const> lists) { copy_words_of_all(stream, {lists}); }
void scatter_elements(Stream& stream, std::span<ScatterElements const> lists) {
  scatter_elements_of_all(stream, {lists});
}
#endif

template <class T>
struct GatherStoredOfAll {
  std::span<GatherStored<T> const> lists;
};
template <class T>
struct ScatterStoredOfAll {
  std::span<ScatterStored<T> const> lists;
};

template <Space S, class T>
void run(Exec<S> ex, GatherStoredOfAll<T> const& all) {
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](GatherStored<T> const& g) { return g.ids.size(); });
  each_row_item(ex, list.segments(), [] GPUPS_FN(GatherStored<T> const& g, std::size_t i, NativeLanes lanes) {
    std::size_t const stride = g.rows.stride;
    if (stride == 0) return;
    if (g.ids[i] == kNoRow) return;
    T const* const from = g.rows.row(g.ids[i]);
    lanes.each(stride, [&](std::size_t j) { g.out[i * stride + j] = from[j]; });
  });
}

template <Space S, class T>
void run(Exec<S> ex, ScatterStoredOfAll<T> const& all) {
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](ScatterStored<T> const& s) { return s.ids.size(); });
  each_row_item(ex, list.segments(), [] GPUPS_FN(ScatterStored<T> const& s, std::size_t i, NativeLanes lanes) {
    std::size_t const stride = s.rows.stride;
    if (stride == 0) return;
    if (s.ids[i] == kNoRow) return;
    T* const to = s.rows.row(s.ids[i]);
    lanes.each(stride, [&](std::size_t j) { to[j] = s.from[i * stride + j]; });
  });
}

GPUPS_KERNEL(gather_stored_of_all, GatherStoredOfAll<float>)
GPUPS_KERNEL(gather_stored_of_all, GatherStoredOfAll<std::uint32_t>)
GPUPS_KERNEL(gather_stored_of_all, GatherStoredOfAll<std::uint64_t>)
GPUPS_KERNEL(scatter_stored_of_all, ScatterStoredOfAll<float>)
GPUPS_KERNEL(scatter_stored_of_all, ScatterStoredOfAll<std::uint32_t>)

#ifndef __CUDACC__
void gather_stored(Stream& stream, std::span<GatherStored<float> const> lists) {
  gather_stored_of_all(stream, {lists});
}
void gather_stored(Stream& stream, std::span<GatherStored<std::uint32_t> const> lists) {
  gather_stored_of_all(stream, {lists});
}
void gather_stored(Stream& stream, std::span<GatherStored<std::uint64_t> const> lists) {
  gather_stored_of_all(stream, {lists});
}
void scatter_stored(Stream& stream, std::span<ScatterStored<float> const> lists) {
  scatter_stored_of_all(stream, {lists});
}
void scatter_stored(Stream& stream, std::span<ScatterStored<std::uint32_t> const> lists) {
  scatter_stored_of_all(stream, {lists});
}
#endif

}  // namespace gpups::kernels
