// SPDX-License-Identifier: Apache-2.0
// Finds the distinct keys of a part on the host. The keys are partitioned into buckets, which are searched
// independently; then the results of all buckets are concatenated.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/index/distinct_keys.hpp"
#include "kernels/index/key_buckets.hpp"
#include "kernels/index/unique_keys.hpp"

namespace gpups::kernels {

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
