// SPDX-License-Identifier: Apache-2.0
// Numbers distinct keys in the order of first use, on one thread. The slots of the hash table have 4 bytes: each is the
// number of a key in a dense list. If few keys are frequent, they are next to each other at the beginning of the list
// and stay in cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The distinct keys of those that were added, and their numbers.
class DistinctKeys {
 public:
  // entries: the most keys that will be added, which may all be distinct. keys: room for `entries` keys; the distinct
  // keys are written there.
  DistinctKeys(std::size_t entries, Key* keys)
      : keys_(keys), slots_(Device::host(), std::bit_ceil(std::max<std::size_t>(2 * entries, 64))) {
    std::fill_n(slots_.data(), slots_.size(), kNoRow);
  }

  std::uint32_t size() const { return size_; }

  // Adds n keys and sets numbers[i] to the number of keys[i]. It is hard to predict whether a key is new, so no branch
  // depends on it: the next place of the list is written in any case. The only branch is for slots that have another
  // key.
  void add(Key const* keys, std::size_t n, std::uint32_t* numbers) {
    auto const mask = static_cast<std::uint32_t>(slots_.size() - 1);
    std::uint32_t* const slots = slots_.data();
    std::uint32_t size = size_, places[kGroup];
    for (std::size_t first = 0; first < n; first += kGroup) {
      std::size_t const count = std::min(kGroup, n - first);
      for (std::size_t k = 0; k < count; ++k) places[k] = static_cast<std::uint32_t>(hash_of(keys[first + k])) & mask;
      for (std::size_t k = 0; k < count; ++k) {
        Key const key = keys[first + k];
        std::uint32_t place = places[k], number = slots[place];
        bool is_new = number == kNoRow;
        number = is_new ? size : number;
        keys_[size] = key;
        while (keys_[number] != key) [[unlikely]] {
            place = (place + 1) & mask;
            is_new = slots[place] == kNoRow;
            number = is_new ? size : slots[place];
          }
        slots[place] = number;
        size += is_new ? 1 : 0;
        numbers[first + k] = number;
      }
    }
    size_ = size;
  }

 private:
  static constexpr std::size_t kGroup = 64;  // keys whose hashes are computed together, in vectors

  Key* keys_;
  Array<std::uint32_t> slots_;
  std::uint32_t size_ = 0;
};

}  // namespace gpups::kernels
