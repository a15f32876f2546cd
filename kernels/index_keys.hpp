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

// Gives keys[absent[r]] the number first_id + r, in `ids`, the index and the list of keys.
struct InsertKeys {
  Buckets buckets;
  View<Key const> keys;
  View<std::uint32_t const> absent;  // (count)
  std::uint32_t first_id;
  View<std::uint32_t> ids;
  Rows<std::uint64_t> key_of_id;  // stride 1
};
void insert_keys(Stream& stream, InsertKeys const& arguments);

// Puts the keys of numbers 0 .. count - 1 into empty buckets.
struct RebuildIndex {
  Buckets buckets;
  Rows<std::uint64_t const> key_of_id;  // stride 1
  std::size_t count;
};
void rebuild_index(Stream& stream, RebuildIndex const& arguments);

}  // namespace gpups::kernels
