// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/sort_keys.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"
#ifdef __CUDACC__
#include "kernels/index/sort_keys_device.hpp"
#else
#include "kernels/index/sort_keys_host.hpp"
#endif

namespace gpups::kernels {

struct SortKeys {
  std::span<SortedKeys const> lists;
};

template <Space S>
void run(Exec<S> ex, SortKeys const& all) {
  std::vector<SortedKeys> lists;
  for (auto const& list : all.lists) {
    GPUPS_ASSERT(list.sorted.size() == list.keys.size() && list.positions.size() == list.keys.size());
    if (!list.keys.empty()) lists.push_back(list);
  }
  if (!lists.empty()) sort_lists(ex, std::move(lists));
}

// A list, and where it goes.
struct CopiedKeys {
  View<Key const> from;
  View<Key> to;
};
struct ConcatenateKeys {
  std::span<View<Key const> const> lists;
  View<Key> to;
};

template <Space S>
void run(Exec<S> ex, ConcatenateKeys const& all) {
  std::vector<CopiedKeys> copies;
  std::size_t at = 0;
  for (auto const& list : all.lists) {
    if (!list.empty()) copies.push_back({list, all.to.slice(at, list.size())});
    at += list.size();
  }
  GPUPS_ASSERT(at <= all.to.size());
  SegmentList const list(ex, std::move(copies), [](CopiedKeys const& c) { return c.from.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CopiedKeys const& c, std::size_t i) { c.to[i] = c.from[i]; });
}

GPUPS_KERNEL(sort_keys_of_all, SortKeys)
GPUPS_KERNEL(concatenate_keys_of_all, ConcatenateKeys)

#ifndef __CUDACC__
void sort_keys(Stream& stream, std::span<SortedKeys const> lists) { sort_keys_of_all(stream, {lists}); }
void concatenate_keys(Stream& stream, std::span<View<Key const> const> lists, View<Key> to) {
  concatenate_keys_of_all(stream, {lists, to});
}
#endif

}  // namespace gpups::kernels
