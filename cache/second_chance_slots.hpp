// SPDX-License-Identifier: Apache-2.0
// Which slot of a dictionary a new key gets: what a reader and an owner of rows both compute from the same messages, so
// that neither needs to tell the other.
//
// A hand goes round over the slots. It passes those whose keys a batch under way names, and, once, those that have been
// named again since it last came by. So a key that is named often stays, and what is kept for each slot elsewhere can
// rely on its key from the batch's announcement until its gradients have been sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::cache {

// Of a key that has none.
inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

class SecondChanceSlots {
 public:
  explicit SecondChanceSlots(std::size_t capacity) : capacity_(capacity) {}

  // These keys are named again, for a batch of this step. REQUIRES: slots < filled().
  void touch(std::span<std::uint32_t const> slots, Clock step);
  // The slots of the first of `count` new keys of a batch of this step; the others get none. First come slots that had
  // another key, then new ones, from filled() on. A batch is under way if its step is `now` or later.
  std::vector<std::uint32_t> allocate(std::size_t count, Clock step, Clock now);

  // Slots below have a key.
  std::size_t filled() const { return last_step_.size(); }
  std::size_t capacity() const { return capacity_; }
  static constexpr std::size_t kBytesEach = sizeof(std::int64_t) + sizeof(std::uint8_t);

 private:
  // Moves the hand to a slot whose key may go, and behind it; kNoSlot if there is none among the next few.
  std::uint32_t find_victim(Clock now);

  std::size_t capacity_;
  std::vector<std::int64_t> last_step_;   // (filled), the latest that names the key
  std::vector<std::uint8_t> referenced_;  // (filled), 1: named again since the hand came by
  std::size_t hand_ = 0;
};

}  // namespace gpups::cache
