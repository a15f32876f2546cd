// SPDX-License-Identifier: Apache-2.0
// Sorts lists of keys on the host. One thread sorts a list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/index/indexed_keys.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Sorts a list of at most two ascending pieces. Returns false, and does nothing, if it has more. No branch depends on
// how the pieces are mixed.
inline bool merge_two_pieces(SortedKeys const& list) {
  Key const* const keys = list.keys.data();
  Key const* const end = keys + list.keys.size();
  Key const* const middle = std::is_sorted_until(keys, end);
  if (std::is_sorted_until(middle, end) != end) return false;
  auto const n = static_cast<std::uint32_t>(end - keys), size = static_cast<std::uint32_t>(middle - keys);
  Key* const sorted = list.sorted.data();
  std::uint32_t* const positions = list.positions.data();
  std::uint32_t a = 0, b = size, to = 0;
  for (; a < size && b < n; ++to) {
    std::uint64_t const key_a = number(keys[a]), key_b = number(keys[b]);
    std::uint32_t const of_b = key_b < key_a ? 1 : 0, of_a = 1 - of_b;
    sorted[to] = Key{key_a ^ ((key_a ^ key_b) & (0 - std::uint64_t{of_b}))};
    positions[to] = list.first + a * of_a + b * of_b;
    a += of_a;
    b += of_b;
  }
  for (std::uint32_t from = a < size ? a : b; to < n; ++from, ++to) {
    sorted[to] = keys[from];
    positions[to] = list.first + from;
  }
  return true;
}

inline void sort_list(SortedKeys const& list) {
  if (merge_two_pieces(list)) return;
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
