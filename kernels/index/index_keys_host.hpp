// SPDX-License-Identifier: Apache-2.0
// Finds and inserts keys on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/insert_share_host.hpp"
#include "kernels/index/key_search_host.hpp"
#include "kernels/runtime/barrier_phases.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"

namespace gpups::kernels {

// Finds keys in many indices on the host, a block of keys at a time.
inline void find_keys(HostExec ex, FindKeys const& f) {
  constexpr std::size_t kBlock = KeySearch::kPending;
  auto const blocks_of = [](KeysOfIndex const& index) { return (index.keys.size() + kBlock - 1) / kBlock; };
  GPUPS_ASSERT(f.missing.empty() || f.missing.size() == f.indices.size());
  std::size_t blocks = 0;
  for (auto const& index : f.indices) blocks += blocks_of(index);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    auto const* index = f.indices.data();
    for (; block >= blocks_of(*index); ++index) block -= blocks_of(*index);
    std::size_t const first = block * kBlock, count = std::min(kBlock, index->keys.size() - first);
    std::uint32_t* const ids = index->ids.data() + first;
    KeySearch search;
    search.begin(index->buckets, index->keys.slice(first, count), ids, kBlock - 1);
    search.look<true>(count);
    search.finish(count);
    if (f.missing.empty()) return;
    std::uint32_t missing = 0;
    for (std::size_t k = 0; k < count; ++k) missing += ids[k] == kNoRow ? 1 : 0;
    if (missing != 0) atomic_add(&f.missing[static_cast<std::size_t>(index - f.indices.data())], missing);
  });
}

// Inserts keys on the host, without atomic operations. Threads partition the absent keys by share; then each thread
// inserts the keys of its share, and numbers the new keys of its chunk. A large batch is processed in parts, so that
// the buckets of a part stay in the second-level caches until its keys have numbers.

// Inserts a part of a batch. Callers call the functions in the order in which they are declared: once for each share or
// chunk, in parallel, or only once if their comment says so.
class PartInsertion {
 public:
  PartInsertion(Buckets const& buckets, View<Key const> keys, View<std::uint32_t> ids,
                std::vector<InsertedShare>& shares)
      : buckets_(buckets),
        ids_(ids.data()),
        partition_(keys, ids, static_cast<std::uint32_t>(shares.size())),
        shares_(shares.data()) {}

  void partition(std::uint32_t chunk) { partition_.partition(chunk); }

  void insert(std::uint32_t s) {
    shares_[s].begin(partition_.size(s));
    partition_.copy_places(s, shares_[s].places.data());
    insertion(s).run();
    count_new_of_share(s);
  }
  // Counts the new keys of each chunk. Called once.
  void count_new() {
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) {
      if (!shares_[s].beyond_limit.empty()) {
        shares_are_mixed_ = true;
        insertion(s).insert_beyond_limit();
        count_new_of_share(s);
      }
      repeats_new_keys_ |= shares_[s].repeats_new_keys;
      for (std::uint32_t c = 0; c < partition_.chunks(); ++c) before_[c + 1] += shares_[s].new_in_chunk[c];
    }
    for (std::uint32_t c = 0; c < partition_.chunks(); ++c) before_[c + 1] += before_[c];
  }
  // Writes the ids of a chunk's keys and numbers its new keys. first: the number of new keys in earlier parts.
  void number(InsertKeys const& f, std::size_t first, std::uint32_t chunk) {
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) {
      std::uint32_t const *const places = partition_.places(chunk, s), *const found = shares_[s].found.data() +
                                                                                      partition_.start(s, chunk);
      for (std::size_t k = 0, count = partition_.count(chunk, s); k < count; ++k) ids_[places[k]] = found[k];
    }
    if (before_[chunk] == before_[chunk + 1]) return;
    std::size_t r = first + before_[chunk];
    for (std::size_t begin = partition_.begin(chunk), end; begin < partition_.end(chunk); begin = end) {
      end = std::min(begin + kNumberAtOnce, partition_.end(chunk));
      r = number_block(f, r, begin, end);
    }
  }
  // Adds the number of new keys of this part to `count`. Called once.
  void end_numbering(std::size_t& count) {
    count += before_[partition_.chunks()];
    if (!shares_are_mixed_) return;
    // The next part must not use a bucket of another share before all numbers are written.
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) write_numbers(s);
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) shares_[s].new_count = 0;
  }
  // Writes the numbers of new keys to the index, and to the ids of keys that the part repeats.
  void write_numbers(std::uint32_t s) {
    constexpr std::size_t kAhead = 16;
    std::uint32_t* const* const numbers = shares_[s].new_numbers.data();
    std::size_t const count = shares_[s].new_count;
    for (std::size_t k = 0; k < count; ++k) {
      if (k + kAhead < count) __builtin_prefetch(numbers[k + kAhead], 1);
      *numbers[k] = ids_[*numbers[k] & ~kNewKey];
    }
    if (!repeats_new_keys_) return;
    for (std::size_t i = partition_.begin(s); i < partition_.end(s); ++i) {
      if ((ids_[i] & kNewKey) != 0) ids_[i] = ids_[ids_[i] & ~kNewKey];
    }
  }

 private:
  static constexpr std::size_t kNumberAtOnce = 1024;

  ShareInsertion insertion(std::uint32_t s) {
    return ShareInsertion(buckets_, {s, partition_.shares()}, partition_.keys(), shares_[s]);
  }
  void count_new_of_share(std::uint32_t s) {
    InsertedShare& share = shares_[s];
    std::uint32_t const *const places = share.places.data(), *const found = share.found.data();
    share.repeats_new_keys = false;
    std::size_t first = 0;
    for (std::uint32_t c = 0; c < partition_.chunks(); ++c) {
      std::size_t const last = first + partition_.count(c, s);
      std::uint32_t count = 0, with_repeated = 0;
      for (std::size_t k = first; k < last; ++k) {
        count += found[k] == (kNewKey | places[k]) ? 1 : 0;
        with_repeated += (found[k] & kNewKey) != 0 ? 1 : 0;
      }
      share.new_in_chunk[c] = count;
      share.repeats_new_keys |= with_repeated != count;
      first = last;
    }
  }
  // Gives numbers to the new keys at positions first .. last - 1, beginning with the r-th new key. Returns the next r.
  std::size_t number_block(InsertKeys const& f, std::size_t r, std::size_t first, std::size_t last) {
    // Has no branch: each position is written to the list, and only those of new keys are kept. So the list has room
    // for one more.
    std::uint32_t places[kNumberAtOnce + 1];
    std::size_t count = 0;
    for (std::size_t i = first; i < last; ++i) {
      places[count] = static_cast<std::uint32_t>(i);
      count += ids_[i] == (kNewKey | i) ? 1 : 0;
    }
    for (std::size_t k = 0; k < count; ++k, ++r) {
      std::uint32_t const id = f.number_of_new(r);
      f.new_ids[r] = ids_[places[k]] = id;
      *f.key_of_id.row(id) = gpups::number(partition_.keys()[places[k]]);
    }
    return r;
  }

  Buckets buckets_;
  std::uint32_t* ids_;
  KeyShares partition_;
  InsertedShare* shares_;                    // of the current part
  std::size_t before_[kSharesMax + 1] = {};  // number of new keys in the chunks before each
  bool repeats_new_keys_ = false;            // the part has a new key more than once
  bool shares_are_mixed_ = false;            // a share has inserted keys into buckets of another one
};

// Inserts keys into one index, with at most `threads` threads.
inline void insert_keys(HostExec ex, InsertKeys const& f, std::size_t threads) {
  constexpr std::size_t kKeysOfThread = std::size_t{1} << 11;
  std::size_t const n = f.index.keys.size();
  auto const shares = static_cast<std::uint32_t>(std::clamp<std::size_t>(n / 1024, 1, threads));
  std::vector<InsertedShare> inserted(shares);
  std::vector<PartInsertion> parts;
  parts.reserve((n + kKeysOfThread * shares - 1) / (kKeysOfThread * shares));
  for (std::size_t first = 0; first < n; first += kKeysOfThread * shares) {
    std::size_t const count = std::min(kKeysOfThread * shares, n - first);
    parts.emplace_back(f.index.buckets, f.index.keys.slice(first, count), f.index.ids.slice(first, count), inserted);
  }
  ex.arena->blocks(shares, [&](std::size_t s) {
    for (auto& part : parts) part.partition(static_cast<std::uint32_t>(s));
  });
  // A part has three steps: insert(), number() and write_numbers(). The third is done in the same phase as the first
  // step of the next part.
  std::size_t done = 0;  // number of new keys in earlier parts
  run_phases(
      *ex.arena, 2 * parts.size() + 1, shares,
      [&](std::size_t step, std::size_t block) {
        auto const s = static_cast<std::uint32_t>(block);
        std::size_t const p = step / 2;
        if (step % 2 != 0) return parts[p].number(f, done, s);
        if (p > 0) parts[p - 1].write_numbers(s);
        if (p < parts.size()) parts[p].insert(s);
      },
      [&](std::size_t step) {
        if (step == 2 * parts.size()) return;
        step % 2 == 0 ? parts[step / 2].count_new() : parts[step / 2].end_numbering(done);
      });
  *f.count = done;
}

// All threads work together on an index that gets many keys: 8192, or more than one thread's share of all keys. The
// other indices are distributed over the threads.
inline void insert_keys(HostExec ex, std::span<InsertKeys const> indices) {
  constexpr std::size_t kMany = 8192;
  std::size_t const threads = std::min<std::size_t>(static_cast<std::size_t>(ex.arena->threads()), kSharesMax);
  std::size_t total = 0;
  for (InsertKeys const& index : indices) total += index.index.keys.size();
  std::vector<InsertKeys const*> small;
  for (InsertKeys const& index : indices) {
    std::size_t const n = index.index.keys.size();
    bool const together = n >= kMany || n * threads > total;
    if (!together) small.push_back(&index);
    if (together) insert_keys(ex, index, threads);
  }
  ex.arena->blocks(small.size(), [&](std::size_t i) { insert_keys(ex, *small[i], 1); });
  if (!std::all_of(indices.begin(), indices.end(), [](InsertKeys const& index) { return index.distinct; })) {
    wait_for(ex, "waiting for new keys");
  }
}

}  // namespace gpups::kernels
