// SPDX-License-Identifier: Apache-2.0
// Sorts keys on the host, on one thread, with their places in a list.
#pragma once

#include <cstdint>
#include <vector>

namespace gpups::kernels {

// A key, or another number, and its place in the list that is sorted.
struct IndexedKey {
  std::uint64_t value;
  std::uint32_t index;
};

// Sorts by value, stably. Large lists are sorted in linear time, by a radix sort; lists of few ascending pieces are
// merged, and ascending ones only read. spare: memory for it, of any size; it may be exchanged with `indexed`.
void sort_by_value(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare);
inline void sort_by_value(std::vector<IndexedKey>& indexed) {
  std::vector<IndexedKey> spare;
  sort_by_value(indexed, spare);
}

}  // namespace gpups::kernels
