// SPDX-License-Identifier: Apache-2.0
// The kernels of a key index. Searching reads one or two cache lines per key, inserting writes as many.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/bucket.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// ids[i] = the number of keys[i], or kNoRow.
struct FindKeys {
  Buckets buckets;
  View<Key const> keys;     // (n)
  View<std::uint32_t> ids;  // (>= n)
};
void find_keys(Stream& stream, FindKeys const& arguments);

// Writes the i of each ids[i] == kNoRow to absent, in order, and their number to *count. Waits for `stream`.
struct ListAbsent {
  View<std::uint32_t const> ids;  // (n)
  View<std::uint32_t> absent;     // (>= n)
  std::size_t* count;             // on the host
};
void wait_list_absent(Stream& stream, ListAbsent const& arguments);

// Gives keys[absent[r]] the number new_ids[r], in `ids`, the index and the list of keys.
struct InsertKeys {
  Buckets buckets;
  View<Key const> keys;
  View<std::uint32_t const> absent;   // (count)
  View<std::uint32_t const> new_ids;  // (count), distinct
  View<std::uint32_t> ids;
  Rows<std::uint64_t> key_of_id;  // stride 1
};
void insert_keys(Stream& stream, InsertKeys const& arguments);

// Puts the keys of `from`, and their numbers, into `to`, which is empty before.
struct MoveKeys {
  Buckets from, to;
  Rows<std::uint32_t const> keep;  // keys of numbers whose first word is 0 are left out; without chunks: none is
};
void move_keys(Stream& stream, MoveKeys const& arguments);

}  // namespace gpups::kernels
