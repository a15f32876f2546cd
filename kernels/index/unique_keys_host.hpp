// SPDX-License-Identifier: Apache-2.0
// Finds distinct keys on the host. A small part is processed by one thread; a large part is cut into buckets. The order
// of keys is by home, bucket and first use, and buckets depend on sizes alone.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/index/bucketed_unique.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"

namespace gpups::kernels {

// Groups the distinct keys of a part by home. Within a home they keep their order.
inline void group_by_home(KeyPart const& part, std::uint32_t rows) {
  auto const homes = static_cast<std::uint32_t>(part.home_offsets.size() - 1);
  Array<Key> const keys(Device::host(), rows);
  Array<std::uint32_t> const places(Device::host(), rows);
  Key* const key = keys.data();
  std::uint32_t *const place = places.data(), *const start = part.home_offsets.data();
  std::copy_n(part.unique.data(), rows, key);
  for (std::uint32_t r = 0; r < rows; ++r) place[r] = home_of(key[r], homes);
  std::fill_n(start, homes + 1, 0U);
  for (std::uint32_t r = 0; r < rows; ++r) ++start[place[r] + 1];
  for (std::uint32_t h = 0; h < homes; ++h) start[h + 1] += start[h];
  std::vector<std::uint32_t> next(start, start + homes);
  for (std::uint32_t r = 0; r < rows; ++r) part.unique[place[r] = next[place[r]]++] = key[r];
  for (std::uint32_t& position : part.positions.slice(0, part.keys.size())) position = place[position];
}

// Finds the distinct keys of a part that is one bucket, on one thread.
inline void find_whole(KeyPart const& part) {
  std::size_t const n = part.keys.size();
  DistinctKeys distinct(n, part.unique.data());
  distinct.add(part.keys.data(), n, part.positions.data());
  if (part.home_offsets.size() > 2) {
    group_by_home(part, distinct.size());
  } else {
    part.home_offsets[0] = 0;
    part.home_offsets[1] = distinct.size();
  }
  if (part.offsets.empty()) return;
  std::uint32_t const* const rows = part.positions.data();
  std::uint32_t *const ends = part.offsets.data() + 1, *const order = part.order.data();
  std::fill_n(part.offsets.data(), distinct.size() + 1, 0U);
  for (std::size_t i = 0; i < n; ++i) ++ends[rows[i]];
  counts_to_starts(ends, distinct.size(), 0);
  for (std::size_t i = 0; i < n; ++i) order[ends[rows[i]]++] = static_cast<std::uint32_t>(i);
}

using Pieces = std::vector<std::pair<BucketedUnique*, std::uint32_t>>;

// Returns the pieces 0 .. count() - 1 of all parts.
inline Pieces pieces_of(std::vector<std::unique_ptr<BucketedUnique>> const& parts,
                        std::uint32_t (BucketedUnique::*count)() const) {
  Pieces pieces;
  for (auto const& part : parts) {
    for (std::uint32_t i = 0; i < (part.get()->*count)(); ++i) pieces.emplace_back(part.get(), i);
  }
  return pieces;
}

inline void unique_keys(HostExec ex, UniqueKeys const& u) {
  wait_for(ex, "waiting for distinct keys");
  std::vector<KeyPart const*> whole;
  std::vector<std::unique_ptr<BucketedUnique>> partition;
  std::size_t entries = 0, largest_whole = 0;
  for (KeyPart const& part : u.parts) {
    std::size_t const n = part.keys.size();
    entries += n;
    if (n > kBucketEntries) {
      partition.push_back(std::make_unique<BucketedUnique>(part, u.homes));
    } else {
      whole.push_back(&part);
      largest_whole = std::max(largest_whole, n);
    }
  }
  Pieces const blocks = pieces_of(partition, &BucketedUnique::blocks),
               buckets = pieces_of(partition, &BucketedUnique::buckets);
  // Waking another thread takes longer than a little work.
  constexpr std::size_t kFewEntries = 8192;
  bool const parallel = entries - largest_whole > kFewEntries;
  auto const run = [&](std::size_t tasks, auto const& task) {
    if (parallel) return ex.arena->blocks(tasks, task);
    for (std::size_t t = 0; t < tasks; ++t) task(t);
  };

  run(blocks.size(), [&](std::size_t t) { blocks[t].first->partition(blocks[t].second); });
  for (auto const& part : partition) part->place_entries();
  run(whole.size() + buckets.size(), [&](std::size_t t) {
    if (t < whole.size()) return find_whole(*whole[t]);
    auto const [part, bucket] = buckets[t - whole.size()];
    part->find(bucket);
  });
  for (auto const& part : partition) part->place_rows();
  run(blocks.size() + buckets.size(), [&](std::size_t t) {
    if (t < blocks.size()) return blocks[t].first->write_positions(blocks[t].second);
    auto const [part, bucket] = buckets[t - blocks.size()];
    part->write_rows(bucket);
  });
}

}  // namespace gpups::kernels
