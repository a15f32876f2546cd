// SPDX-License-Identifier: Apache-2.0
// Partitions the keys of one part into buckets: equal ranges of the hash, a whole number of them for each home. One
// thread searches a bucket for distinct keys, independently of other buckets, with a hash table that fits its cache.
//
// Keys are partitioned block by block: the scratch memory of a block has the keys of its first bucket first, in their
// order, then those of the next bucket, and so on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kKeyBlock = 8192;  // entries of a block; a position in a block has 16 bits

// The partitioned keys of one part.
class KeyBuckets {
 public:
  KeyBuckets(View<Key const> keys, std::uint32_t buckets)
      : blocks_((keys.size() + kKeyBlock - 1) / kKeyBlock),
        buckets_(buckets),
        from_(keys),
        keys_(Device::host(), keys.size()),
        places_(Device::host(), keys.size()),
        numbers_(Device::host(), keys.size()),
        starts_(Device::host(), blocks_ * (buckets + 1)) {
    GPUPS_ASSERT(buckets <= 1U << 16);
  }

  std::size_t blocks() const { return blocks_; }
  std::uint32_t buckets() const { return buckets_; }

  // Partitions a block. Called once for each block, in any order.
  void partition(std::size_t block) const {
    std::size_t const first = block * kKeyBlock, count = std::min(kKeyBlock, from_.size() - first);
    Key const* const from = from_.data() + first;
    std::uint16_t bucket[kKeyBlock], rank[kKeyBlock];  // rank: position within the bucket
    for (std::size_t k = 0; k < count; ++k) bucket[k] = static_cast<std::uint16_t>(home_of(from[k], buckets_));
    std::uint32_t* const start = starts_.data() + block * (buckets_ + 1);
    std::fill_n(start, buckets_ + 1, 0U);
    for (std::size_t k = 0; k < count; ++k) rank[k] = static_cast<std::uint16_t>(start[bucket[k] + 1]++);
    for (std::uint32_t b = 0; b < buckets_; ++b) start[b + 1] += start[b];
    // Addresses are computed from ranks, so that none of them waits for a counter that was just stored.
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t const to = first + start[bucket[k]] + rank[k];
      keys_.data()[to] = from[k];
      places_.data()[to] = static_cast<std::uint16_t>(k);
    }
  }

  // The entries of a bucket in one block.
  struct Run {
    std::size_t count;
    std::uint32_t first;          // entry of the block's first key
    Key const* keys;              // (count)
    std::uint16_t const* places;  // (count): key k is of entry first + places[k]; ascending
    std::uint32_t* numbers;       // (count), written and read by the caller
  };
  Run run(std::size_t block, std::uint32_t bucket) const {
    std::uint32_t const* const start = starts_.data() + block * (buckets_ + 1) + bucket;
    std::size_t const first = block * kKeyBlock, at = first + start[0];
    return {start[1] - start[0], static_cast<std::uint32_t>(first), keys_.data() + at, places_.data() + at,
            numbers_.data() + at};
  }

 private:
  std::size_t blocks_;
  std::uint32_t buckets_;
  View<Key const> from_;
  Array<Key> keys_;
  Array<std::uint16_t> places_;
  Array<std::uint32_t> numbers_;
  Array<std::uint32_t> starts_;  // (blocks, buckets + 1)
};

}  // namespace gpups::kernels
