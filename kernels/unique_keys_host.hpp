// SPDX-License-Identifier: Apache-2.0
// Distinct keys on the host. Keys are divided into 16 classes by bits of their hash; a thread takes some of the
// classes, looks at all keys and puts its own into a hash table. The order of the result is by home, class and first
// use, whatever the number of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/hash.hpp"
#include "kernels/launch.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kClasses = 16;
inline constexpr std::uint32_t class_of(std::uint64_t hash) { return hash >> 28 & (kClasses - 1); }

// The distinct keys of some classes, in the order of first use.
class DistinctKeys {
 public:
  DistinctKeys() = default;
  // entries: most keys that will be added; expected: about how many of them.
  DistinctKeys(std::size_t entries, std::size_t expected)
      : keys_(Device::host(), entries), slots_(Device::host(), std::bit_ceil(std::max<std::size_t>(expected, 64))) {
    clear();
  }

  void prefetch(std::uint64_t hash) const { __builtin_prefetch(slots_.data() + (hash & mask_)); }

  // The number of this key, from 0.
  std::uint32_t add(Key key, std::uint64_t hash) {
    for (std::uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_.data()[at];
      if (slot.key == key && slot.rank != kNoRow) return slot.rank;
      if (slot.rank != kNoRow) continue;
      slot = {key, size_};
      keys_.data()[size_] = key;
      if (++size_ * 2 > mask_) grow();
      return size_ - 1;
    }
  }
  View<Key const> keys() const { return keys_.view().slice(0, size_); }

 private:
  struct Slot {
    Key key;
    std::uint32_t rank;
  };
  void clear() {
    mask_ = slots_.size() - 1;
    std::fill_n(slots_.data(), slots_.size(), Slot{Key{}, kNoRow});
  }
  void grow() {
    slots_ = Array<Slot>(Device::host(), slots_.size() * 2);
    clear();
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      std::uint64_t at = hash_of(keys_[rank]) & mask_;
      while (slots_.data()[at].rank != kNoRow) at = (at + 1) & mask_;
      slots_.data()[at] = {keys_[rank], rank};
    }
  }

  Array<Key> keys_;
  Array<Slot> slots_;
  std::uint64_t mask_ = 0;
  std::uint32_t size_ = 0;
};

// What one thread does: writes rank * shares + share to the positions of its classes' keys.
inline DistinctKeys find_share(UniqueKeys const& u, std::uint32_t share, std::uint32_t shares) {
  constexpr std::size_t kGroup = 256;
  std::size_t const n = u.keys.size();
  DistinctKeys distinct(n, n / shares);
  std::uint64_t hash[kGroup];
  std::uint16_t mine[kGroup];
  for (std::size_t first = 0; first < n; first += kGroup) {
    std::size_t const count = std::min(kGroup, n - first);
    for (std::size_t k = 0; k < count; ++k) hash[k] = hash_of(u.keys[first + k]);
    std::size_t own = 0;
    for (std::size_t k = 0; k < count; ++k) {
      mine[own] = static_cast<std::uint16_t>(k);
      own += class_of(hash[k]) * shares / kClasses == share ? 1 : 0;
    }
    for (std::size_t k = 0; k < own; ++k) distinct.prefetch(hash[mine[k]]);
    for (std::size_t k = 0; k < own; ++k) {
      std::size_t const i = first + mine[k];
      u.positions[i] = distinct.add(u.keys[i], hash[mine[k]]) * shares + share;
    }
  }
  return distinct;
}

inline void unique_keys(HostExec ex, UniqueKeys const& u) {
  std::size_t const n = u.keys.size();
  auto const shares = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(n / 4096, 1, std::min<std::size_t>(ex.arena->threads(), kClasses)));
  std::vector<DistinctKeys> found(shares);
  ex.arena->blocks(shares,
                   [&](std::size_t share) { found[share] = find_share(u, static_cast<std::uint32_t>(share), shares); });

  // Where each (home, class) starts.
  std::vector<std::uint32_t> start(std::size_t{u.homes} * kClasses + 1, 0);
  auto const group_of = [&](Key key) {
    std::uint64_t const hash = hash_of(key);
    return std::size_t{home_of_hash(hash, u.homes)} * kClasses + class_of(hash);
  };
  std::size_t most = 0;
  for (auto const& part : found) {
    most = std::max(most, part.keys().size());
    for (Key const key : part.keys()) ++start[group_of(key) + 1];
  }
  for (std::size_t g = 1; g < start.size(); ++g) start[g] += start[g - 1];
  for (std::uint32_t h = 0; h <= u.homes; ++h) u.home_offsets[h] = start[std::size_t{h} * kClasses];

  // Classes belong to one share each, so shares place their keys independently.
  Array<std::uint32_t> place(Device::host(), most * shares);
  ex.arena->blocks(shares, [&](std::size_t share) {
    std::uint32_t* to = place.data() + share;
    std::vector<std::uint32_t> next = start;
    for (Key const key : found[share].keys()) {
      u.unique[*to = next[group_of(key)]++] = key;
      to += shares;
    }
  });
  each(ex, n, [&](std::size_t i) { u.positions[i] = place.data()[u.positions[i]]; });
}

}  // namespace gpups::kernels
