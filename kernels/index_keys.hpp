// SPDX-License-Identifier: Apache-2.0
// The kernels of a key index. A search reads one cache line for nearly every key, there or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/bucket.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// ids[i] = the number of keys[i], or kNoRow.
struct KeysOfIndex {
  Buckets buckets;
  View<Key const> keys;     // (n)
  View<std::uint32_t> ids;  // (>= n)
};
// Any number of indices: on a GPU one launch for 32 of them.
struct FindKeys {
  std::span<KeysOfIndex const> indices;  // on the host
  View<std::uint32_t> missing{};         // (indices), to each is added how many keys are absent; empty: not wanted
};
void find_keys(Stream& stream, FindKeys const& arguments);

// Puts the keys in that are not there, whose ids are kNoRow, and writes their numbers. The r-th of them, in the order
// in which the batch has them first, gets number free[r], or past these the next one from next_id on. *count: how many.
// Waits for `stream`. REQUIRES: ids are as find_keys() would write them now, but on the host kNoRow may also stand for
// keys that are there; room for all.
struct InsertKeys {
  KeysOfIndex index;               // n < 2^31
  View<std::uint32_t const> free;  // distinct
  std::uint32_t next_id;
  View<std::uint32_t> new_ids;    // (>= *count): their numbers, in this order
  Rows<std::uint64_t> key_of_id;  // stride 1; written for new numbers
  std::size_t* count;             // on the host

  GPUPS_FN std::uint32_t number_of_new(std::size_t r) const {
    return r < free.size() ? free[r] : next_id + static_cast<std::uint32_t>(r - free.size());
  }
};
// No number has this bit. Meanwhile a new key has it and the first place of an equal key in the batch.
inline constexpr std::uint32_t kNewKey = 0x80000000;
void wait_insert_keys(Stream& stream, InsertKeys const& arguments);

// Takes out the keys that have these numbers. was[i] = ids[i], or kNoRow where no key had it.
struct EraseKeys {
  Buckets buckets;
  View<std::uint32_t const> ids;        // (n), distinct
  Rows<std::uint64_t const> key_of_id;  // stride 1; of a number without a key: any that it had
  View<std::uint32_t> was;              // (n)
};
void erase_keys(Stream& stream, EraseKeys const& arguments);

// Makes buckets first .. last - 1 empty.
struct ClearBuckets {
  BucketArray buckets;
  std::uint32_t first, last;
};
void clear_buckets(Stream& stream, ClearBuckets const& arguments);

// Copies the keys whose places in `from` are first .. last - 1, with their numbers, to `to`.
struct MoveKeys {
  BucketArray from, to;
  std::uint32_t first, last;
};
void move_keys(Stream& stream, MoveKeys const& arguments);

}  // namespace gpups::kernels
