// SPDX-License-Identifier: Apache-2.0
// Keys that one rank remembers for another, each with a slot and two steps: since when something of it waits to be
// sent, and when it was last named.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/key_index.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/wire/accumulate_residual.hpp"

namespace gpups::cache {

// A step as marks have it, above 0.
constexpr std::uint32_t stamp_of(Clock step) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number(step)) % 0xFFFFFFFE) + 1;
}

class KeyAgeIndex {
 public:
  explicit KeyAgeIndex(Device device)
      : index_(device, 0, kGrowth), marks_(device, kernels::kResidualMarks, kernels::NewRows::kZero, kGrowth) {}

  // Of what is kept for each key, here and beside: there is one of these for each other rank and table, and many ranks
  // remember few keys for most of the others.
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;

  // slots[i] becomes the slot of keys[i]. Returns those that were given now, whose marks are 0. Waits for `stream`.
  Array<std::uint32_t> wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> slots);

  // Slots with a mark that is at least so many steps old, ascending. Waits for `stream`.
  Array<std::uint32_t> wait_list_aged(Stream& stream, kernels::ResidualMark mark, Clock step, std::uint32_t age) const;
  // The slots of all keys, ascending. Waits for `stream`.
  Array<std::uint32_t> wait_slots(Stream& stream) const { return index_.wait_ids(stream); }
  // The age from which on keys must go, by when they were named, so that no more than `most` stay, or somewhat fewer;
  // 0: none must. Keys of this step stay. Depends on the marks alone, not on slots. Waits for `stream`.
  std::uint32_t wait_eviction_age(Stream& stream, Clock step, std::size_t most) const;
  // Their slots may be given again, with marks of 0. Waits for `stream`.
  void wait_erase(Stream& stream, View<std::uint32_t const> slots);

  Array<Key> wait_keys(Stream& stream, View<std::uint32_t const> slots) const;
  kernels::Rows<std::uint32_t> marks() { return marks_.ref(); }
  kernels::Rows<std::uint32_t const> marks() const { return marks_.const_ref(); }
  std::size_t size() const { return index_.size(); }
  static std::size_t bytes_for(std::size_t keys) {
    return kernels::KeyIndex::bytes_for(keys, kGrowth) +
           kernels::RowStorage<std::uint32_t>::bytes_for(keys, kernels::kResidualMarks, kGrowth);
  }
  // Slots are below this.
  std::size_t slots_end() const { return index_.ids_end(); }

 private:
  kernels::KeyIndex index_;
  kernels::RowStorage<std::uint32_t> marks_;
};

}  // namespace gpups::cache
