// SPDX-License-Identifier: Apache-2.0
// Sorts lists of keys on the host. One thread sorts a list.
#pragma once

#include <utility>
#include <vector>

#include "kernels/index/indexed_keys.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline void sort_list(SortedKeys const& list) {
  thread_local std::vector<IndexedKey> indexed, spare;
  indexed.clear();
  for (std::uint32_t i = 0; i < list.keys.size(); ++i) indexed.push_back({number(list.keys[i]), list.first + i});
  sort_by_value(indexed, spare);
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    list.sorted[i] = Key{indexed[i].value};
    list.positions[i] = indexed[i].index;
  }
}

inline void sort_lists(HostExec ex, std::vector<SortedKeys> const& lists) {
  std::size_t keys = 0;
  for (auto const& list : lists) keys += list.keys.size();
  // Waking another thread takes longer than a little work.
  constexpr std::size_t kFewKeys = 4096;
  if (keys > kFewKeys) return ex.arena->blocks(lists.size(), [&](std::size_t i) { sort_list(lists[i]); });
  for (auto const& list : lists) sort_list(list);
}

}  // namespace gpups::kernels
