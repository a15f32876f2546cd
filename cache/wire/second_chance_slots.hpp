// SPDX-License-Identifier: Apache-2.0
// Selects the slot of a new key in a key dictionary. Reader and owner compute it from the same lists of keys, so no
// message is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "kernels/base/assert.hpp"

namespace gpups::cache {

// The slot number of a key without a slot.
inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

// Replaces keys by the CLOCK algorithm (second chance). A hand moves over the slots in a circle. It skips slots whose
// keys a batch in progress uses, and it skips each slot once if its key was used again since the hand last passed it.
// So frequent keys stay, and the slots of a batch's keys are stable from the announcement of the batch until its
// gradients are sent.
class SecondChanceSlots {
 public:
  // capacity: maximum number of slots.
  explicit SecondChanceSlots(std::size_t capacity) : capacity_(capacity) {}

  // Marks slots as used by a batch of step `step`. REQUIRES: slots < filled().
  void touch(std::span<std::uint32_t const> slots, Clock step);
  // Assigns slots to `count` new keys of a batch of step `step`. Returns the slots of the first keys; the remaining
  // keys get none. Replaced slots come first, in descending order, then new slots from filled() on. Slots that batches
  // of step `now` or later use are not replaced.
  std::vector<std::uint32_t> allocate(std::size_t count, Clock step, Clock now);

  // Returns the number of slots with a key; they are 0 .. filled() - 1.
  std::size_t filled() const { return last_step_.size(); }
  std::size_t capacity() const { return capacity_; }
  // Memory in bytes for each slot.
  static constexpr std::size_t kBytesEach = sizeof(std::int64_t) + sizeof(std::uint8_t);

 private:
  // Returns the next slot whose key can be replaced, and moves the hand behind it. Returns kNoSlot if there is none
  // among the next 8 slots.
  std::uint32_t find_victim(Clock now);

  std::size_t capacity_;
  std::vector<std::int64_t> last_step_;   // (filled): the last step that uses the key
  std::vector<std::uint8_t> referenced_;  // (filled), 1: used again since the hand passed it
  std::size_t hand_ = 0;
};

// Maximum number of slots that the hand examines for a new key. If none of them can be replaced, the key gets no slot.
inline constexpr int kSlotLooks = 8;

inline void SecondChanceSlots::touch(std::span<std::uint32_t const> slots, Clock step) {
  for (std::uint32_t const slot : slots) {
    GPUPS_ASSERT(slot < filled());
    last_step_[slot] = std::max(last_step_[slot], number(step));
    referenced_[slot] = 1;
  }
}

inline std::uint32_t SecondChanceSlots::find_victim(Clock now) {
  for (int look = 0; look < kSlotLooks; ++look) {
    std::size_t const slot = hand_;
    hand_ = slot + 1 < filled() ? slot + 1 : 0;
    if (last_step_[slot] >= number(now)) continue;
    if (referenced_[slot] == 0) return static_cast<std::uint32_t>(slot);
    referenced_[slot] = 0;
  }
  return kNoSlot;
}

inline std::vector<std::uint32_t> SecondChanceSlots::allocate(std::size_t count, Clock step, Clock now) {
  std::size_t const fresh = std::min(count, capacity_ - filled());
  std::vector<std::uint32_t> allocated;
  for (std::size_t i = fresh; i < count && filled() > 0; ++i) {
    std::uint32_t const slot = find_victim(now);
    if (slot == kNoSlot) continue;
    allocated.push_back(slot);
    last_step_[slot] = number(step);
  }
  std::sort(allocated.begin(), allocated.end(),
            std::greater<>());  // the order in which kernels::KeyIndex assigns free numbers
  for (std::size_t i = 0; i < fresh; ++i) {
    allocated.push_back(static_cast<std::uint32_t>(filled()));
    last_step_.push_back(number(step));
    referenced_.push_back(0);
  }
  return allocated;
}

}  // namespace gpups::cache
