// SPDX-License-Identifier: Apache-2.0
// The search on the host. Keys are hashed by vectors. First buckets are asked for some keys ahead, in the second-level
// cache, which can wait for more lines at once than the first, and are looked at without a branch. Keys that may be in
// a later bucket wait until the end, when their next buckets are looked at in the same way. So no branch is guessed
// wrong, and the memory always has work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/first_buckets_host.hpp"
#include "kernels/index_keys.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Finds up to kKeys keys, some at a time. What the caller does between ask() and find() overlaps with the reading of
// buckets.
class BlockSearch {
 public:
  static constexpr std::size_t kKeys = 2048;

  void begin(Buckets const& buckets, View<Key const> keys) {
    buckets_ = buckets;
    keys_ = keys;
    asked_ = 0;
  }
  // Asks for the first buckets of the keys before `end`. REQUIRES: there are keys.
  [[gnu::always_inline]] void ask(std::size_t end) {
    for (end = std::min(end, keys_.size() + kFar); asked_ < end; asked_ += kGroup) {
      place(asked_);
      for (std::size_t k = 0; k < kGroup; ++k) __builtin_prefetch(bucket_[asked_ + k], 0, kSecondLevel);
    }
  }
  // ids[k] = the number of key first + k, or kNoRow, up to key `last`. kClose: first buckets are brought closer, from
  // the second-level cache, before they are looked at; not worth it where they were asked for long ago.
  template <bool kClose = true>
  void find(std::size_t first, std::size_t last, std::uint32_t* ids) {
    std::size_t waiting = 0;
    if (kClose) ask(first + kFar), place(first + kFar);
    for (std::size_t group = first; group < last; group += kGroup) {
      kClose ? place(group + kFar + kGroup) : ask(group + kGroup + kFar);
      for (std::size_t i = group; i < std::min(group + kGroup, last); ++i) {
        if (kClose) __builtin_prefetch(bucket_[i + kFar], 0, kSecondLevel);
        if (kClose) __builtin_prefetch(bucket_[i + kNear]);
        waiting = look(i, ids[i - first], waiting);
      }
    }
    std::uint32_t const most = std::max(buckets_.old.size, buckets_.grown.size);
    for (std::uint32_t steps = 1; waiting != 0 && steps < most; ++steps) {
      waiting = go_on(first, ids, waiting);
    }
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 8, kAhead = 16;

  // Hashes the keys first .. first + kGroup - 1; past the last one, the last ones again.
  [[gnu::always_inline]] void place(std::size_t first) {
    std::size_t const n = keys_.size();
    if (first + kGroup <= n) return place(keys_.data() + first, first);
    Key last[kGroup];
    for (std::size_t k = 0; k < kGroup; ++k) last[k] = keys_[std::min(first + k, n - 1)];
    place(last, first);
  }
  [[gnu::always_inline]] void place(Key const* keys, std::size_t first) {
    Buckets const buckets = buckets_;
    for (std::size_t k = 0; k < kGroup; k += kKeysOfVector) {
      KeyWords const hash = hashes_of(keys + k), address = first_buckets(buckets, hash);
      std::memcpy(bucket_ + first + k, &address, sizeof address);
      store_tags(hash, tag_ + first + k);
    }
  }
  // Looks at bucket_[i] for key i, and lets it wait if it may be in a later one. Returns how many wait.
  [[gnu::always_inline]] std::size_t look(std::size_t i, std::uint32_t& id, std::size_t waiting) {
    Bucket const* const bucket = bucket_[i];
    std::uint32_t const place = bucket->place_of(keys_[i]);
    std::uint32_t const none = (place - 1) >> 31;  // 1 or 0; of a comparison the compiler makes a branch
    // Where no place is found this reads the marks, which follow the numbers.
    auto const* const numbers = reinterpret_cast<std::uint32_t const*>(bucket) + 2 * kBucketKeys;
    static_assert(kNoRow == 0U - 1);
    id = numbers[__builtin_ctz(place | 1U << kBucketKeys)] | (0U - none);
    waiting_[waiting] = static_cast<std::uint32_t>(i);
    return waiting + (none & bucket->marks >> tag_[i]);
  }

  // Looks at the next bucket of each key that waits. ids: of the keys from `first` on.
  std::size_t go_on(std::size_t first, std::uint32_t* ids, std::size_t count) {
    std::size_t waiting = 0;
    for (std::size_t k = 0; k < count; ++k) {
      if (k + kAhead < count) __builtin_prefetch(bucket_[waiting_[k + kAhead]] + 1);
      std::uint32_t const i = waiting_[k];
      bucket_[i] = next(bucket_[i]);
      waiting = look(i, ids[i - first], waiting);
    }
    return waiting;
  }
  Bucket const* next(Bucket const* bucket) const {
    // By the array that it is in: one may end where the other begins.
    auto const from_grown =
        reinterpret_cast<std::uintptr_t>(bucket) - reinterpret_cast<std::uintptr_t>(buckets_.grown.bucket);
    BucketArray const& array = from_grown < buckets_.grown.size * sizeof(Bucket) ? buckets_.grown : buckets_.old;
    return bucket + 1 == array.bucket + array.size ? array.bucket : bucket + 1;
  }

  Buckets buckets_;
  View<Key const> keys_;
  std::size_t asked_ = 0;
  // By key: the bucket that is looked at, and the bit of its marks that says whether such a key went on.
  Bucket const* bucket_[kKeys + kFar + 2 * kGroup];
  std::uint8_t tag_[kKeys + kFar + 2 * kGroup];
  std::uint32_t waiting_[kKeys + 1];  // keys
};

inline void find_keys(HostExec ex, FindKeys const& f) {
  constexpr std::size_t kBlock = BlockSearch::kKeys;
  auto const blocks_of = [](KeysOfIndex const& index) { return (index.keys.size() + kBlock - 1) / kBlock; };
  std::size_t blocks = 0;
  for (auto const& index : f.indices) blocks += blocks_of(index);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    auto const* index = f.indices.data();
    for (; block >= blocks_of(*index); ++index) block -= blocks_of(*index);
    std::size_t const first = block * kBlock, count = std::min(kBlock, index->keys.size() - first);
    BlockSearch search;
    search.begin(index->buckets, index->keys.slice(first, count));
    search.find(0, count, index->ids.data() + first);
  });
}

}  // namespace gpups::kernels
