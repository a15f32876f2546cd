// SPDX-License-Identifier: Apache-2.0
// The kernels of a key index. A search reads one cache line for nearly every key, present or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/index/bucket.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// ids[i] = the number of keys[i], or kNoRow.
struct KeysOfIndex {
  Buckets buckets;
  View<Key const> keys;     // (n)
  View<std::uint32_t> ids;  // (>= n)
};
// Finds keys in any number of indices, on a GPU in one launch.
struct FindKeys {
  std::span<KeysOfIndex const> indices;  // on the host
  View<std::uint32_t> missing{};         // (indices): the number of absent keys is added to each; empty: none
};
void find_keys(Stream& stream, FindKeys const& arguments);

// Inserts the absent keys, whose ids are kNoRow, and writes their numbers. The r-th new key, in the order of first use
// in the batch, gets the r-th number from the end of `free`; later keys get the numbers from next_id on. Sets *count to
// the number of new keys. Waits for `stream`, unless the host knows all numbers. REQUIRES: `ids` are what find_keys()
// would write now, except that, on the host, kNoRow may also stand for keys that are present; the index has room for
// all new keys.
struct InsertKeys {
  KeysOfIndex index;               // n < 2^31
  View<std::uint32_t const> free;  // distinct; on the device of the index
  std::uint32_t next_id;
  View<std::uint32_t> new_ids;    // (>= *count), output: the new numbers, in this order
  Rows<std::uint64_t> key_of_id;  // stride 1; written for new numbers
  std::size_t* count;             // on the host
  bool distinct = false;          // no absent key is there twice, and new_ids has as many elements as keys are absent

  GPUPS_FN std::uint32_t number_of_new(std::size_t r) const {
    return r < free.size() ? free[free.size() - 1 - r] : next_id + static_cast<std::uint32_t>(r - free.size());
  }
};
// A bit that no row number has. While keys are being inserted, the id of a new key is this bit with the first position
// of an equal key in the batch.
inline constexpr std::uint32_t kNewKey = 0x80000000;
// Does so for many indices, which are different ones. Waits once at most.
void wait_insert_keys(Stream& stream, std::span<InsertKeys const> indices);
inline void wait_insert_keys(Stream& stream, InsertKeys const& index) { wait_insert_keys(stream, {&index, 1}); }

// Erases the keys that have these numbers. erased[i] becomes ids[i], or kNoRow if no key has that number (any more).
struct EraseKeys {
  Buckets buckets;
  View<std::uint32_t const> ids;        // (n), kNoRow: ignored
  Rows<std::uint64_t const> key_of_id;  // stride 1; of a number without a key: a key that had it
  View<Key> erased;                     // (n), numbers, in the type that sort_keys() takes
};
// Erases keys of many indices, in one launch.
void erase_keys(Stream& stream, std::span<EraseKeys const> indices);

// Merges the numbers of erased keys into free numbers, both ascending. Sets *count to the number of erased keys.
struct MergeFree {
  View<std::uint32_t const> free;  // (f)
  View<Key const> erased;          // (n): numbers, and kNoRow at the end
  View<std::uint32_t> merged;      // (f + n), of which the last are not written if `erased` has kNoRow
  std::uint32_t* count;            // on the device
};
// Does so for many indices, in one launch.
void merge_free(Stream& stream, std::span<MergeFree const> indices);

// Writes the numbers below `end` that are not free, ascending.
struct ListUsed {
  View<std::uint32_t const> free;  // (f), ascending
  std::uint32_t end;
  View<std::uint32_t> used;  // (end - f)
};
void list_used(Stream& stream, ListUsed const& arguments);

// Clears the buckets first .. last - 1.
struct ClearBuckets {
  BucketArray buckets;
  std::uint32_t first, last;
};
void clear_buckets(Stream& stream, ClearBuckets const& arguments);

// Copies the keys whose first bucket in `from` is one of first .. last - 1, with their numbers, to `to`.
struct MoveKeys {
  BucketArray from, to;
  std::uint32_t first, last;
};
void move_keys(Stream& stream, MoveKeys const& arguments);

}  // namespace gpups::kernels
