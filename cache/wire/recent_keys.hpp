// SPDX-License-Identifier: Apache-2.0
// The keys of a key dictionary, by slot. Reader and owner compute them from the same lists, so no message is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// The slot number of a key without a slot.
inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

// New keys get the next slots. At the end of a period, the keys that were neither added nor used in it are dropped, and
// the others move up, as in a garbage collector with one bit for each object. So a key stays for one to two periods
// after its last use. A period ends when there were as many new keys as a multiple of the keys that returned, so memory
// follows the number of keys that return, and keys that never return take a bounded amount. With few new keys, a period
// ends when each key could have been used several times, so that memory shrinks after a large working set, too.
class RecentKeys {
 public:
  // capacity: maximum number of keys.
  explicit RecentKeys(std::size_t capacity) : capacity_(capacity) {}

  // Returns the keys, by slot.
  View<Key const> keys() const { return View<Key const>(keys_); }
  // Marks the key of a slot as used by the current list.
  void use(std::uint32_t slot) {
    returned_ += used_[slot] == 0 ? 1 : 0;
    used_[slot] = 1;
  }
  void prefetch(std::uint32_t slot) const {
    __builtin_prefetch(keys_.data() + slot);
    __builtin_prefetch(used_.data() + slot, 1);
  }
  // Makes room for `fresh` new keys, if the capacity allows it.
  void reserve(std::size_t fresh);
  // Adds a new key of the current list. Returns false if the capacity is reached. REQUIRES: reserve() was called.
  bool add(Key key) {
    ++fresh_;
    if (keys_.size() == capacity_) return false;
    keys_.push_back(key);
    used_.push_back(1);
    return true;
  }
  // Ends a list, in which `keys` keys were used or new. Returns whether slots have changed.
  bool end_list(std::size_t keys);

  // Returns the number of keys for which there is memory.
  std::size_t reserved() const { return keys_.capacity(); }
  // Memory in bytes for each key.
  static constexpr std::size_t kBytesEach = sizeof(Key) + sizeof(std::uint8_t);

 private:
  // A period has at least this number of new keys, or 8 times as many keys.
  static constexpr std::size_t kPeriodLeast = 4096;
  void drop_unused();

  std::size_t capacity_;
  std::vector<Key> keys_;           // (n)
  std::vector<std::uint8_t> used_;  // (n), 1: added or used in this period
  // In this period: number of keys of lists, of new ones among them, and of distinct keys that were older.
  std::size_t listed_ = 0, fresh_ = 0, returned_ = 0;
};

inline void RecentKeys::reserve(std::size_t fresh) {
  std::size_t const size = std::min(capacity_, keys_.size() + fresh);
  if (size <= reserved()) return;
  std::size_t const more = std::min(capacity_, std::max(size, keys_.size() + keys_.size() / 2));
  keys_.reserve(more);
  used_.reserve(more);
}

inline bool RecentKeys::end_list(std::size_t keys) {
  listed_ += keys;
  std::size_t const period = std::max({kPeriodLeast, 8 * returned_, 4 * keys});
  if (fresh_ < std::min(period, capacity_ / 2 + 1) && listed_ < 8 * std::max(kPeriodLeast, keys_.size())) return false;
  drop_unused();
  return true;
}

inline void RecentKeys::drop_unused() {
  auto const count = static_cast<std::size_t>(std::count(used_.begin(), used_.end(), std::uint8_t{1}));
  RecentKeys kept(capacity_);
  kept.reserve(count + count / 2);
  kept.keys_.resize(count);
  kept.used_.resize(count, 0);
  for (std::size_t slot = 0, next = 0; next < count; ++slot) {
    kept.keys_[next] = keys_[slot];
    next += used_[slot];
  }
  *this = std::move(kept);
}

}  // namespace gpups::cache
