// SPDX-License-Identifier: Apache-2.0
// Distinct keys on the host. A small part is the work of one thread; a large one is cut into buckets, whose results are
// put one after the other. So the order is by home, bucket and first use, and buckets depend on sizes alone.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/distinct_keys.hpp"
#include "kernels/key_buckets.hpp"
#include "kernels/launch.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups::kernels {

// A part is one bucket up to kBucketEntries; then it has more, for the sake of many cores; from 32 on they grow with
// it, as long as their tables fit a core's cache.
inline constexpr std::size_t kBucketEntries = 16384;
inline std::uint32_t buckets_of_home(std::size_t entries, std::uint32_t homes) {
  std::size_t const many = std::min<std::size_t>((entries + kBucketEntries - 1) / kBucketEntries, 32);
  std::size_t const buckets = std::max(many, std::min<std::size_t>(entries / (4 * kBucketEntries), 256));
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, (buckets + homes - 1) / homes));
}

// From counts to the first place of each, beginning with `start`.
inline void counts_to_starts(std::uint32_t* counts, std::size_t n, std::uint32_t start) {
  for (std::size_t r = 0; r < n; ++r) {
    std::uint32_t const count = counts[r];
    counts[r] = start;
    start += count;
  }
}

// A part whose keys are one bucket: all by one thread, with no memory between.
inline void find_whole(KeyPart const& part) {
  std::size_t const n = part.keys.size();
  DistinctKeys distinct(n, part.unique.data());
  distinct.add(part.keys.data(), n, part.positions.data());
  part.home_offsets[0] = 0;
  part.home_offsets[1] = distinct.size();
  if (part.offsets.empty()) return;
  std::uint32_t const* const rows = part.positions.data();
  std::uint32_t *const ends = part.offsets.data() + 1, *const order = part.order.data();
  std::fill_n(part.offsets.data(), distinct.size() + 1, 0U);
  for (std::size_t i = 0; i < n; ++i) ++ends[rows[i]];
  counts_to_starts(ends, distinct.size(), 0);
  for (std::size_t i = 0; i < n; ++i) order[ends[rows[i]]++] = static_cast<std::uint32_t>(i);
}

// A part cut into buckets. Each step is to be done for all blocks or buckets before the next.
class CutPart {
 public:
  CutPart(KeyPart const& part, std::uint32_t homes, std::uint32_t of_home)
      : part_(part),
        of_home_(of_home),
        cut_(part.keys, homes * of_home),
        unique_(Device::host(), part.keys.size()),
        ends_(Device::host(), part.keys.size()),
        first_entry_(cut_.buckets() + 1),
        first_row_(cut_.buckets() + 1) {}

  std::size_t blocks() const { return cut_.blocks(); }
  std::size_t buckets() const { return cut_.buckets(); }

  void cut(std::size_t block) { cut_.cut(block); }

  void place_entries() {
    for (std::uint32_t b = 0; b < cut_.buckets(); ++b) {
      first_entry_[b + 1] = first_entry_[b];
      each_run(b, [&](KeyBuckets::Run const& run) { first_entry_[b + 1] += static_cast<std::uint32_t>(run.count); });
    }
  }

  // The distinct keys of a bucket.
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
    for (std::uint32_t b = 0; b < cut_.buckets(); ++b) {
      auto const run = cut_.run(block, b);
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
    for (std::size_t block = 0; block < cut_.blocks(); ++block) act(cut_.run(block, bucket));
  }

  // A counting sort of a bucket's entries by their keys' numbers.
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
  KeyBuckets cut_;
  Array<Key> unique_;                                   // (n): bucket b's from first_entry_[b] on,
  Array<std::uint32_t> ends_;                           // (n): likewise, where the entries of each end in `order`
  std::vector<std::uint32_t> first_entry_, first_row_;  // (buckets + 1)
};

// Calls act(item, i) for each i < count(item) of all items, in parallel if there are `entries` enough to gain by it.
template <class Items, class Count, class Act>
void for_all(HostExec ex, std::size_t entries, Items& items, Count count, Act act) {
  std::vector<std::pair<std::size_t, std::size_t>> tasks;
  for (std::size_t item = 0; item < items.size(); ++item) {
    for (std::size_t i = 0; i < count(items[item]); ++i) tasks.emplace_back(item, i);
  }
  auto const run = [&](std::size_t t) { act(items[tasks[t].first], tasks[t].second); };
  constexpr std::size_t kFewEntries = 8192;
  if (entries > kFewEntries) return ex.arena->blocks(tasks.size(), run);
  for (std::size_t t = 0; t < tasks.size(); ++t) run(t);
}

inline void unique_keys(HostExec ex, UniqueKeys const& u) {
  std::size_t entries = 0;
  std::vector<std::unique_ptr<CutPart>> cut;
  struct Search {
    KeyPart const* whole;
    CutPart* cut;
  };
  std::vector<Search> searches;
  for (KeyPart const& part : u.parts) {
    entries += part.keys.size();
    std::uint32_t const of_home = buckets_of_home(part.keys.size(), u.homes);
    if (of_home * u.homes == 1) {
      searches.push_back({&part, nullptr});
    } else {
      cut.push_back(std::make_unique<CutPart>(part, u.homes, of_home));
      searches.push_back({nullptr, cut.back().get()});
    }
  }
  auto const blocks = [](auto const& part) { return part->blocks(); };
  for_all(ex, entries, cut, blocks, [](auto& part, std::size_t block) { part->cut(block); });
  for (auto& part : cut) part->place_entries();
  for_all(
      ex, entries, searches, [](Search const& s) { return s.whole != nullptr ? 1 : s.cut->buckets(); },
      [](Search const& s, std::size_t bucket) {
        s.whole != nullptr ? find_whole(*s.whole) : s.cut->find(static_cast<std::uint32_t>(bucket));
      });
  for (auto& part : cut) part->place_rows();
  for_all(ex, entries, cut, blocks, [](auto& part, std::size_t block) { part->write_positions(block); });
  for_all(
      ex, entries, cut, [](auto const& part) { return part->buckets(); },
      [](auto& part, std::size_t bucket) { part->write_rows(bucket); });
}

}  // namespace gpups::kernels
