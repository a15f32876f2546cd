// SPDX-License-Identifier: Apache-2.0
// Keys that one rank keeps for another rank, such as those with a residual or a mirror.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/codec/accumulate_residual.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

// Converts a step to the number that marks use, which is above 0.
constexpr std::uint32_t stamp_of(Clock step) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number(step)) % 0xFFFFFFFE) + 1;
}

// Gives each key a slot with two marks: the step since when a change of the key waits to be sent, and the step of its
// last use. Functions with `wait` in their names block until `stream` is done. One thread at a time.
class KeyAgeIndex {
 public:
  explicit KeyAgeIndex(Device device)
      : index_(device, 0, kGrowth), marks_(device, kernels::kResidualMarks, kernels::NewRows::kZero, kGrowth) {}

  // How this index and the arrays that are indexed by its slots grow. There is one index for each other rank and table,
  // and most of them have few keys, so they must be small at first.
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;

  // Writes the slot of keys[i] to slots[i]; new keys get a slot. Returns the new slots; their marks are 0.
  Array<std::uint32_t> wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> slots);

  // Writes the slot of keys[i] to slots[i], or kNoRow. Queued on `stream`.
  void find(Stream& stream, View<Key const> keys, View<std::uint32_t> slots) const { index_.find(stream, keys, slots); }

  // Returns the slots whose mark is at least `age` steps before `step`, ascending.
  Array<std::uint32_t> wait_list_aged(Stream& stream, kernels::ResidualMark mark, Clock step, std::uint32_t age) const;
  // Returns the slots of all keys, ascending. Queued on `stream`.
  Array<std::uint32_t> list_slots(Stream& stream) const { return index_.list_ids(stream); }
  // Returns the age in steps since the last use from which keys must be erased so that at most 7/8 of `most` keys stay;
  // 0 if there are no more than `most` keys. At least 1 otherwise, so keys of step `step` stay. Depends only on the
  // marks, so ranks with equal marks get equal ages.
  std::uint32_t wait_eviction_age(Stream& stream, Clock step, std::size_t most) const;
  // Erases the keys of these slots. The slots may be given to new keys.
  void wait_erase(Stream& stream, View<std::uint32_t const> slots);

  // Returns the keys of these slots.
  Array<Key> wait_keys(Stream& stream, View<std::uint32_t const> slots) const;
  kernels::Rows<std::uint32_t> marks() { return marks_.ref(); }
  kernels::Rows<std::uint32_t const> marks() const { return marks_.const_ref(); }
  std::size_t size() const { return index_.size(); }
  // Returns the bytes of memory for `keys` keys.
  static std::size_t bytes_for(std::size_t keys) {
    return kernels::KeyIndex::bytes_for(keys, kGrowth) +
           kernels::RowStorage<std::uint32_t>::bytes_for(keys, kernels::kResidualMarks, kGrowth);
  }
  // All slots are below this number.
  std::size_t slots_end() const { return index_.ids_end(); }

 private:
  kernels::KeyIndex index_;
  kernels::RowStorage<std::uint32_t> marks_;
};

}  // namespace gpups::cache
