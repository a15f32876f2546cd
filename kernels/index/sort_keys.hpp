// SPDX-License-Identifier: Apache-2.0
// Sorts lists of keys, all lists at once, and puts lists one after another.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// A list of keys. Afterwards `sorted` has them in ascending order, and sorted[i] == keys[positions[i] - first]; equal
// keys have ascending positions.
struct SortedKeys {
  View<Key const> keys;           // (n)
  View<Key> sorted;               // (n)
  View<std::uint32_t> positions;  // (n)
  std::uint32_t first = 0;        // the position of keys[0]
};
// Sorts lists that have at most 2^31 - 1 keys together. Queued on `stream`. Cost on a GPU: the number of launches does
// not depend on the number of lists.
void sort_keys(Stream& stream, std::span<SortedKeys const> lists);

// Writes lists of keys one after another to `to`, which has room for all of them. Queued on `stream`, on a GPU in one
// launch.
void concatenate_keys(Stream& stream, std::span<View<Key const> const> lists, View<Key> to);

}  // namespace gpups::kernels
