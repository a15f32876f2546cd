// SPDX-License-Identifier: Apache-2.0
// The keys of a batch that have no number, cut by share: threads that change an index at once each have a share of the
// hashes, which is a range of buckets. The batch is cut in chunks, each by one thread, and a share is a list of each
// chunk's places. So a thread looks at a chunk and at its share, however many others there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/bucket.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kSharesMax = 32;

// Some of the hashes: a stretch of their low halves.
struct HashShare {
  std::uint32_t number, count;

  // The share, of `count`, that has a hash.
  static std::uint32_t of(std::uint64_t hash, std::uint32_t count) {
    return static_cast<std::uint32_t>((hash & 0xFFFFFFFF) * count >> 32);
  }
  std::uint64_t end() const { return ((std::uint64_t{number + 1} << 32) + count - 1) / count; }
  // The buckets of an array that no later share has keys in.
  std::uint32_t limit(BucketArray const& array) const { return number + 1 == count ? array.size : array.place(end()); }
  // The first low half whose place in the array, or the one behind it, is not below the limit.
  std::uint64_t edge(BucketArray const& array) const {
    if (array.size == 0) return end();
    std::uint64_t const last = std::max(limit(array), 1U) - 1;
    return ((last << 32) + array.size - 1) / array.size;
  }
};

class KeyShares {
 public:
  // As many chunks as shares. ids: (keys), kNoRow for those that are to be cut.
  KeyShares(View<Key const> keys, View<std::uint32_t const> ids, std::uint32_t shares)
      : keys_(keys),
        ids_(ids),
        shares_(shares),
        // A cache line of the batch's numbers is of one chunk.
        chunk_size_((keys.size() + kGroup * shares - 1) / (kGroup * shares) * kGroup),
        lists_(Device::host(), std::size_t{shares} * shares * chunk_size_),
        counts_(std::size_t{shares} * shares) {}

  View<Key const> keys() const { return keys_; }
  std::uint32_t shares() const { return shares_; }
  std::uint32_t chunks() const { return shares_; }
  std::size_t begin(std::uint32_t chunk) const { return std::min(chunk * chunk_size_, keys_.size()); }
  std::size_t end(std::uint32_t chunk) const { return begin(chunk + 1); }

  // To be called once for each chunk, in any order.
  void partition(std::uint32_t chunk) {
    std::uint32_t* next[kSharesMax];
    for (std::uint32_t s = 0; s < shares_; ++s) next[s] = list(chunk, s);
    for (std::size_t first = begin(chunk), last = end(chunk); first < last; first += kGroup) {
      // Without a branch; the list has room for what is written and not kept.
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

  // The rest is known when all chunks are cut.
  // How many of a share are in the chunks before this one.
  std::size_t start(std::uint32_t share, std::uint32_t chunk) const {
    std::size_t start = 0;
    for (std::uint32_t c = 0; c < chunk; ++c) start += count(c, share);
    return start;
  }
  std::size_t size(std::uint32_t share) const { return start(share, shares_); }
  // Their places, ascending.
  void copy_places(std::uint32_t share, std::uint32_t* to) const {
    for (std::uint32_t c = 0; c < shares_; ++c) to = std::copy_n(list(c, share), count(c, share), to);
  }
  // A chunk's places of a share, ascending: count() of them.
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
  Array<std::uint32_t> lists_;       // (chunks, shares, chunk_size_): places
  std::vector<std::size_t> counts_;  // (chunks, shares): the lists' lengths
};

}  // namespace gpups::kernels
