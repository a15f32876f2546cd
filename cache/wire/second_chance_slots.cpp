// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/second_chance_slots.hpp"

#include <algorithm>
#include <functional>

#include "kernels/base/assert.hpp"

namespace gpups::cache {
namespace {

// Maximum number of slots that the hand examines for a new key. If none of them can be replaced, the key gets no slot.
constexpr int kLooks = 8;

}  // namespace

void SecondChanceSlots::touch(std::span<std::uint32_t const> slots, Clock step) {
  for (std::uint32_t const slot : slots) {
    GPUPS_ASSERT(slot < filled());
    last_step_[slot] = std::max(last_step_[slot], number(step));
    referenced_[slot] = 1;
  }
}

std::uint32_t SecondChanceSlots::find_victim(Clock now) {
  for (int look = 0; look < kLooks; ++look) {
    std::size_t const slot = hand_;
    hand_ = slot + 1 < filled() ? slot + 1 : 0;
    if (last_step_[slot] >= number(now)) continue;
    if (referenced_[slot] == 0) return static_cast<std::uint32_t>(slot);
    referenced_[slot] = 0;
  }
  return kNoSlot;
}

std::vector<std::uint32_t> SecondChanceSlots::allocate(std::size_t count, Clock step, Clock now) {
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
