// SPDX-License-Identifier: Apache-2.0
// Inserting on the host, without atomic operations: threads cut the keys that are not there by share, each puts in
// those of its share, and numbers the new ones of its chunk. A large batch is taken in parts, whose buckets stay in the
// second-level caches until they have numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/barrier_phases.hpp"
#include "kernels/index_keys.hpp"
#include "kernels/insert_share_host.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Some keys of a batch. Its functions are called in the order in which they stand here: once for each share or chunk,
// side by side, or once where it says so.
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
  // To be called once.
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
  // Writes what was found of a chunk's keys, and numbers its new ones, where the part's new keys are those from
  // `first` on.
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
  // To be called once. Adds the part's new keys to `count`.
  void end_numbering(std::size_t& count) {
    count += before_[partition_.chunks()];
    if (!shares_are_mixed_) return;
    // The next part must not use another share's bucket before all numbers are there.
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) write_numbers(s);
    for (std::uint32_t s = 0; s < partition_.shares(); ++s) shares_[s].new_count = 0;
  }
  // To the index, and to repeated keys.
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
  // Numbers the new keys among first .. last - 1, with free number r and those behind it; returns the next r.
  std::size_t number_block(InsertKeys const& f, std::size_t r, std::size_t first, std::size_t last) {
    // Without a branch; the list has room for what is written and not kept.
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
  InsertedShare* shares_;                    // of the part that is being inserted
  std::size_t before_[kSharesMax + 1] = {};  // new keys of the chunks before
  bool repeats_new_keys_ = false;            // a new key is in the part more than once
  bool shares_are_mixed_ = false;            // one has put keys into another's buckets
};

inline void insert_keys(HostExec ex, InsertKeys const& f) {
  constexpr std::size_t kKeysOfThread = std::size_t{1} << 11;
  std::size_t const n = f.index.keys.size();
  std::size_t const threads = std::min<std::size_t>(static_cast<std::size_t>(ex.arena->threads()), kSharesMax);
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
  // Three steps for each part, but for most the third is one with the first of the next part.
  std::size_t done = 0;  // new keys
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

}  // namespace gpups::kernels
