// SPDX-License-Identifier: Apache-2.0
// Finds the distinct keys of a part on the host: of a small part on one thread; the keys of a large part are
// partitioned into buckets, which are searched independently, and the results of all buckets are concatenated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Numbers distinct keys in the order of first use, on one thread. The slots of the hash table have 4 bytes: each is the
// number of a key in a dense list. If few keys are frequent, they are next to each other at the beginning of the list
// and stay in cache.

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

// Partitions the keys of one part into buckets: equal ranges of the hash, a whole number of them for each home. One
// thread searches a bucket for distinct keys, independently of other buckets, with a hash table that fits its cache.
//
// Keys are partitioned block by block: the scratch memory of a block has the keys of its first bucket first, in their
// order, then those of the next bucket, and so on.
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

// The approximate number of entries of a bucket, whose hash table then fits the cache of a core.
inline constexpr std::size_t kBucketEntries = 65536;

// Returns the number of buckets of each home.
inline std::uint32_t buckets_of_home(std::size_t entries, std::uint32_t homes) {
  std::size_t const buckets = std::min<std::size_t>((entries + kBucketEntries - 1) / kBucketEntries, 256);
  return static_cast<std::uint32_t>((buckets + homes - 1) / homes);
}

// Replaces each count by `start` plus the sum of all counts before it.
inline void counts_to_starts(std::uint32_t* counts, std::size_t n, std::uint32_t start) {
  for (std::size_t r = 0; r < n; ++r) {
    std::uint32_t const count = counts[r];
    counts[r] = start;
    start += count;
  }
}

// Finds the distinct keys of one part. Callers call the functions in this order, each for all blocks or all buckets
// before the next: partition(), place_entries(), find(), place_rows(); then write_positions() and write_rows() in any
// order.
class BucketedUnique {
 public:
  BucketedUnique(KeyPart const& part, std::uint32_t homes)
      : part_(part),
        of_home_(buckets_of_home(part.keys.size(), homes)),
        partition_(part.keys, homes * of_home_),
        unique_(Device::host(), part.keys.size()),
        ends_(Device::host(), part.keys.size()),
        first_entry_(partition_.buckets() + 1),
        first_row_(partition_.buckets() + 1) {}

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(partition_.blocks()); }
  std::uint32_t buckets() const { return partition_.buckets(); }

  void partition(std::size_t block) { partition_.partition(block); }

  void place_entries() {
    for (std::uint32_t b = 0; b < partition_.buckets(); ++b) {
      first_entry_[b + 1] = first_entry_[b];
      each_run(b, [&](KeyBuckets::Run const& run) { first_entry_[b + 1] += static_cast<std::uint32_t>(run.count); });
    }
  }

  // Finds the distinct keys of a bucket, and the entries of each key.
  void find(std::uint32_t bucket) {
    std::uint32_t const first = first_entry_[bucket];
    DistinctKeys distinct(first_entry_[bucket + 1] - first, unique_.data() + first);
    each_run(bucket, [&](KeyBuckets::Run const& run) { distinct.add(run.keys, run.count, run.numbers); });
    first_row_[bucket + 1] = distinct.size();
    if (!part_.offsets.empty()) order_entries(bucket, distinct.size());
  }

  void place_rows() {
    for (std::size_t b = 0; b < buckets(); ++b) first_row_[b + 1] += first_row_[b];
    for (std::size_t h = 0; h < part_.home_offsets.size(); ++h) part_.home_offsets[h] = first_row_[h * of_home_];
    if (!part_.offsets.empty()) part_.offsets[0] = 0;
  }

  void write_positions(std::size_t block) {
    for (std::uint32_t b = 0; b < partition_.buckets(); ++b) {
      auto const run = partition_.run(block, b);
      for (std::size_t k = 0; k < run.count; ++k) {
        part_.positions[run.first + run.places[k]] = first_row_[b] + run.numbers[k];
      }
    }
  }

  void write_rows(std::size_t bucket) {
    std::size_t const from = first_entry_[bucket], to = first_row_[bucket], count = first_row_[bucket + 1] - to;
    std::copy_n(unique_.data() + from, count, part_.unique.data() + to);
    if (!part_.offsets.empty()) std::copy_n(ends_.data() + from, count, part_.offsets.data() + to + 1);
  }

 private:
  // Calls act(run) for the entries of a bucket in each block.
  template <class Act>
  void each_run(std::uint32_t bucket, Act act) const {
    for (std::size_t block = 0; block < partition_.blocks(); ++block) act(partition_.run(block, bucket));
  }

  // Sorts the entries of a bucket by the numbers of their keys, with a counting sort.
  void order_entries(std::uint32_t bucket, std::uint32_t rows) {
    std::uint32_t* const ends = ends_.data() + first_entry_[bucket];
    std::uint32_t* const order = part_.order.data();
    std::fill_n(ends, rows, 0U);
    each_run(bucket, [=](KeyBuckets::Run const& run) {
      for (std::size_t k = 0; k < run.count; ++k) ++ends[run.numbers[k]];
    });
    counts_to_starts(ends, rows, first_entry_[bucket]);
    each_run(bucket, [=](KeyBuckets::Run const& run) {
      for (std::size_t k = 0; k < run.count; ++k) order[ends[run.numbers[k]]++] = run.first + run.places[k];
    });
  }

  KeyPart const& part_;
  std::uint32_t of_home_;
  KeyBuckets partition_;
  Array<Key> unique_;                                   // (n): those of bucket b begin at first_entry_[b]
  Array<std::uint32_t> ends_;                           // (n): likewise, the end of each key's entries in `order`
  std::vector<std::uint32_t> first_entry_, first_row_;  // (buckets + 1)
};

}  // namespace gpups::kernels
