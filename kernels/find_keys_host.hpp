// SPDX-License-Identifier: Apache-2.0
// The search on the host. First buckets are asked for 48 keys ahead, in the second-level cache, which can wait for more
// lines at once than the first, and are looked at without a branch. Keys that may be in a later bucket wait until the
// block's end, when their second buckets are prefetched in turn. So no branch is guessed wrong, and the memory always
// has work.
#pragma once

#include <algorithm>

#include "kernels/index_keys.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kFindBlock = 4096;

// The rest of the search for a key that is not in its first bucket.
inline std::uint32_t find_beyond_first(Buckets const& buckets, Key key) {
  std::uint64_t const hash = hash_of(key);
  BucketArray const array = buckets.of(hash);
  std::uint32_t at = array.place(hash);
  for (std::uint32_t steps = 1; steps < array.size; ++steps) {
    at = array.next(at);
    Bucket const& b = array.bucket[at];
    std::uint32_t const place = b.place_of(key);
    if (place != 0) return b.id[lowest_bit(place)];
    if ((b.marks & went_on(hash)) == 0) return kNoRow;
  }
  return kNoRow;
}

class BlockSearch {
 public:
  explicit BlockSearch(KeysOfIndex const& index) : f_(index) {}

  // Keys first .. last - 1. REQUIRES: at most kFindBlock.
  void run(std::size_t first, std::size_t last) {
    waiting_ = 0;
    for (std::size_t k = 0; k < kFar + kGroup; k += kGroup) place(first + k, last);
    for (std::size_t k = 0; k < kFar; ++k) __builtin_prefetch(bucket_[(first + k) % kRing], 0, kSecondLevel);
    // Past the last key, buckets of earlier ones are asked for again.
    for (std::size_t group = first; group < last; group += kGroup) {
      for (std::size_t i = group; i < std::min(group + kGroup, last); ++i) {
        __builtin_prefetch(bucket_[(i + kFar) % kRing], 0, kSecondLevel);
        __builtin_prefetch(bucket_[(i + kNear) % kRing]);
        look(i);
      }
      place(group + kFar + kGroup, last);
    }
    for (std::size_t k = 0; k < waiting_; ++k) {
      if (k + kAhead < waiting_) prefetch_second(waiting_keys_[k + kAhead]);
      std::uint32_t const i = waiting_keys_[k];
      f_.ids[i] = find_beyond_first(f_.buckets, f_.keys[i]);
    }
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 8, kRing = 128, kAhead = 12;
  static constexpr int kSecondLevel = 2;

  // Hashes the group that begins with key `first`, if there is one.
  void place(std::size_t first, std::size_t last) {
    std::size_t const count = first < last ? std::min(kGroup, last - first) : 0;
    // Copies, which no store below can change, so that the loop is vectorised.
    Buckets const buckets = f_.buckets;
    Key const* const keys = f_.keys.data() + first;
    Bucket const** const bucket = bucket_ + first % kRing;
    std::uint32_t* const tag = tag_ + first % kRing;
    for (std::size_t k = 0; k < count; ++k) {
      std::uint64_t const hash = hash_of(keys[k]);
      bucket[k] = buckets.first(hash);
      tag[k] = went_on(hash);
    }
  }
  [[gnu::always_inline]] void look(std::size_t i) {
    Bucket const* const bucket = bucket_[i % kRing];
    std::uint32_t const place = bucket->place_of(f_.keys[i]);
    // Where no place is found this reads the marks, which follow the numbers.
    auto const* const ids = reinterpret_cast<std::uint32_t const*>(bucket) + 2 * kBucketKeys;
    std::uint32_t const id = ids[__builtin_ctz(place | 1U << kBucketKeys)];
    f_.ids[i] = place != 0 ? id : kNoRow;
    waiting_keys_[waiting_] = static_cast<std::uint32_t>(i);
    waiting_ += (place == 0 ? 1U : 0U) & ((bucket->marks & tag_[i % kRing]) != 0 ? 1U : 0U);
  }
  [[gnu::always_inline]] void prefetch_second(std::size_t i) const {
    std::uint64_t const hash = hash_of(f_.keys[i]);
    BucketArray const array = f_.buckets.of(hash);
    __builtin_prefetch(array.bucket + array.next(array.place(hash)));
  }

  KeysOfIndex const& f_;
  // Of the keys from the one that is looked at on: key i's at i % kRing.
  Bucket const* bucket_[kRing] = {};
  std::uint32_t tag_[kRing] = {};
  std::size_t waiting_ = 0;
  std::uint32_t waiting_keys_[kFindBlock + 1];
};

inline void find_keys(HostExec ex, FindKeys const& f) {
  auto const blocks_of = [](KeysOfIndex const& index) { return (index.keys.size() + kFindBlock - 1) / kFindBlock; };
  std::size_t blocks = 0;
  for (auto const& index : f.indices) blocks += blocks_of(index);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    auto const* index = f.indices.data();
    for (; block >= blocks_of(*index); ++index) block -= blocks_of(*index);
    std::size_t const first = block * kFindBlock;
    BlockSearch(*index).run(first, std::min(first + kFindBlock, index->keys.size()));
  });
}

}  // namespace gpups::kernels
