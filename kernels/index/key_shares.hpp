// SPDX-License-Identifier: Apache-2.0
// Partitions the keys of a batch that have no number by share. Threads that change an index at the same time each have
// a share of the hashes, which is a range of buckets. The batch is cut into chunks. One thread partitions a chunk into
// a list of positions for each share. So a thread reads one chunk and one share, however many threads there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/index/bucket.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kSharesMax = 32;

// One of `count` equal ranges of the low halves of hashes.
struct HashShare {
  std::uint32_t number, count;

  // Returns which of `count` shares has a hash.
  static std::uint32_t of(std::uint64_t hash, std::uint32_t count) {
    return static_cast<std::uint32_t>((hash & 0xFFFFFFFF) * count >> 32);
  }
  // Returns the end of the range.
  std::uint64_t end() const { return ((std::uint64_t{number + 1} << 32) + count - 1) / count; }
  // Returns the number of first buckets of an array in which no later share has keys.
  std::uint32_t limit(BucketArray const& array) const { return number + 1 == count ? array.size : array.place(end()); }
  // Returns the smallest low half of a hash for which the first bucket, or the bucket after it, is not below limit().
  std::uint64_t near_limit(BucketArray const& array) const {
    if (array.size == 0) return end();
    std::uint64_t const last = std::max(limit(array), 1U) - 1;
    return ((last << 32) + array.size - 1) / array.size;
  }
};

// The keys of a batch without a number, by chunk and share.
class KeyShares {
 public:
  // Cuts the batch into as many chunks as shares. ids: (keys), kNoRow for keys without a number.
  KeyShares(View<Key const> keys, View<std::uint32_t const> ids, std::uint32_t shares)
      : keys_(keys),
        ids_(ids),
        shares_(shares),
        // No cache line of `ids` is in two chunks.
        chunk_size_((keys.size() + kGroup * shares - 1) / (kGroup * shares) * kGroup),
        lists_(Device::host(), std::size_t{shares} * shares * chunk_size_),
        counts_(std::size_t{shares} * shares) {}

  View<Key const> keys() const { return keys_; }
  std::uint32_t shares() const { return shares_; }
  std::uint32_t chunks() const { return shares_; }
  std::size_t begin(std::uint32_t chunk) const { return std::min(chunk * chunk_size_, keys_.size()); }
  std::size_t end(std::uint32_t chunk) const { return begin(chunk + 1); }

  // Partitions a chunk. Called once for each chunk, in any order.
  void partition(std::uint32_t chunk) {
    std::uint32_t* next[kSharesMax];
    for (std::uint32_t s = 0; s < shares_; ++s) next[s] = list(chunk, s);
    for (std::size_t first = begin(chunk), last = end(chunk); first < last; first += kGroup) {
      // Has no branch: each position is written to the list, and only those of keys without a number are kept. So the
      // list has room for one more.
      std::uint32_t places[kGroup + 1], share[kGroup];
      std::size_t count = 0;
      for (std::size_t i = first; i < std::min(first + kGroup, last); ++i) {
        places[count] = static_cast<std::uint32_t>(i);
        count += ids_[i] == kNoRow ? 1 : 0;
      }
      for (std::size_t k = 0; k < count; ++k) share[k] = HashShare::of(hash_of(keys_[places[k]]), shares_);
      for (std::size_t k = 0; k < count; ++k) *next[share[k]]++ = places[k];
    }
    for (std::uint32_t s = 0; s < shares_; ++s) {
      counts_[chunk * shares_ + s] = static_cast<std::size_t>(next[s] - list(chunk, s));
    }
  }

  // The functions below may be called when all chunks are partitioned.
  //
  // Returns the number of keys of a share in the chunks before this one.
  std::size_t start(std::uint32_t share, std::uint32_t chunk) const {
    std::size_t start = 0;
    for (std::uint32_t c = 0; c < chunk; ++c) start += count(c, share);
    return start;
  }
  std::size_t size(std::uint32_t share) const { return start(share, shares_); }
  // Writes the positions of the keys of a share, ascending.
  void copy_places(std::uint32_t share, std::uint32_t* to) const {
    for (std::uint32_t c = 0; c < shares_; ++c) to = std::copy_n(list(c, share), count(c, share), to);
  }
  // Returns the positions of the keys of a share in a chunk, ascending: count() of them.
  std::uint32_t const* places(std::uint32_t chunk, std::uint32_t share) const { return list(chunk, share); }
  std::size_t count(std::uint32_t chunk, std::uint32_t share) const { return counts_[chunk * shares_ + share]; }

 private:
  static constexpr std::size_t kGroup = 64;

  std::uint32_t* list(std::uint32_t chunk, std::uint32_t share) const {
    return lists_.data() + (std::size_t{chunk} * shares_ + share) * chunk_size_;
  }

  View<Key const> keys_;
  View<std::uint32_t const> ids_;
  std::uint32_t shares_;
  std::size_t chunk_size_;
  Array<std::uint32_t> lists_;       // (chunks, shares, chunk_size_): positions
  std::vector<std::size_t> counts_;  // (chunks, shares): lengths of the lists
};

}  // namespace gpups::kernels
