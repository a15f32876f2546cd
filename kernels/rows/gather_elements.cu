// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/gather_elements.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
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

}  // namespace gpups::kernels
