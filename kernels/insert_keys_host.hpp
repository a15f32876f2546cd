// SPDX-License-Identifier: Apache-2.0
// Finding and inserting on the host, without atomic operations: threads cut the batch by share, each puts in the keys
// of its share, and numbers the new ones of its chunk. A large batch is taken in parts, whose buckets stay in the
// second-level caches until they have numbers.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/index_keys.hpp"
#include "kernels/insert_share_host.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Some keys of a batch. Each function but count_new() is called once for each share or chunk, side by side with the
// others, and when the one before it has been called for all.
class PartInsertion {
 public:
  PartInsertion(Buckets const& buckets, View<Key const> keys, View<std::uint32_t> ids, std::uint32_t shares)
      : buckets_(buckets), ids_(ids.data()), cut_(keys, shares), shares_(shares) {}

  void cut(std::uint32_t chunk) { cut_.cut(chunk); }

  void insert(std::uint32_t s) {
    shares_[s].reserve(cut_.size(s));
    cut_.copy_places(s, shares_[s].places.data());
    insertion(s).run();
    for (std::uint32_t c = 0; c < cut_.chunks(); ++c) shares_[s].new_in_chunk[c] = count_new(s, c);
  }
  // New keys of the whole part, each counted once.
  std::size_t count_new() {
    for (std::uint32_t s = 0; s < cut_.shares(); ++s) {
      if (!shares_[s].beyond_limit.empty()) insertion(s).insert_beyond_limit();
      for (std::uint32_t c = 0; c < cut_.chunks(); ++c) {
        if (!shares_[s].beyond_limit.empty()) shares_[s].new_in_chunk[c] = count_new(s, c);
        before_[c + 1] += shares_[s].new_in_chunk[c];
      }
    }
    for (std::uint32_t c = 0; c < cut_.chunks(); ++c) before_[c + 1] += before_[c];
    return before_[cut_.chunks()];
  }
  // Writes what was found of a chunk's keys, and numbers its new ones, where the part's new keys are those from
  // `first` on.
  void number(InsertKeys const& f, std::size_t first, std::uint32_t chunk) {
    for (std::uint32_t s = 0; s < cut_.shares(); ++s) {
      std::uint32_t const *const places = shares_[s].places.data(), *const found = shares_[s].found.data();
      std::size_t const last = cut_.start(s, chunk + 1);
      for (std::size_t k = cut_.start(s, chunk); k < last; ++k) ids_[places[k]] = found[k];
    }
    std::size_t r = first + before_[chunk];
    for (std::size_t begin = cut_.begin(chunk), end; begin < cut_.end(chunk); begin = end) {
      end = std::min(begin + kNumberAtOnce, cut_.end(chunk));
      r = number_block(f, r, begin, end);
    }
  }
  // To the index, and to repeated keys.
  void write_numbers(std::uint32_t s) {
    constexpr std::size_t kAhead = 16;
    auto const& share = shares_[s];
    for (std::size_t k = 0; k < share.new_count; ++k) {
      if (k + kAhead < share.new_count) __builtin_prefetch(share.new_numbers.data()[k + kAhead], 1);
      *share.new_numbers.data()[k] = ids_[share.new_places.data()[k]];
    }
    if (before_[cut_.chunks()] == 0) return;
    for (std::size_t i = cut_.begin(s); i < cut_.end(s); ++i) {
      if ((ids_[i] & kNewKey) != 0) ids_[i] = ids_[ids_[i] & ~kNewKey];
    }
  }

 private:
  static constexpr std::size_t kNumberAtOnce = 1024;

  ShareInsertion insertion(std::uint32_t s) {
    return ShareInsertion(buckets_, {s, cut_.shares()}, cut_.keys(), shares_[s]);
  }
  std::size_t count_new(std::uint32_t s, std::uint32_t chunk) const {
    std::uint32_t const *const places = shares_[s].places.data(), *const found = shares_[s].found.data();
    std::size_t const last = cut_.start(s, chunk + 1);
    std::uint32_t count = 0;
    for (std::size_t k = cut_.start(s, chunk); k < last; ++k) count += found[k] == (kNewKey | places[k]) ? 1 : 0;
    return count;
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
      *f.key_of_id.row(id) = gpups::number(cut_.keys()[places[k]]);
    }
    return r;
  }

  Buckets buckets_;
  std::uint32_t* ids_;
  KeyShares cut_;
  std::vector<InsertedShare> shares_;
  std::size_t before_[kSharesMax + 1] = {};  // new keys of the chunks before
};

inline void insert_keys(HostExec ex, InsertKeys const& f) {
  constexpr std::size_t kKeysOfThread = std::size_t{1} << 14;
  std::size_t const n = f.index.keys.size();
  std::size_t const threads = std::min<std::size_t>(static_cast<std::size_t>(ex.arena->threads()), kSharesMax);
  auto const shares = static_cast<std::uint32_t>(std::clamp<std::size_t>(n / 1024, 1, threads));
  auto const each_share = [&](auto const& task) {
    ex.arena->blocks(shares, [&](std::size_t s) { task(static_cast<std::uint32_t>(s)); });
  };
  std::size_t done = 0;  // new keys
  std::optional<PartInsertion> part;
  for (std::size_t first = 0; first < n; first += kKeysOfThread * shares) {
    std::size_t const count = std::min(kKeysOfThread * shares, n - first);
    PartInsertion next(f.index.buckets, f.index.keys.slice(first, count), f.index.ids.slice(first, count), shares);
    each_share([&](std::uint32_t s) {
      if (part) part->write_numbers(s);
      next.cut(s);
    });
    part.emplace(std::move(next));
    each_share([&](std::uint32_t s) { part->insert(s); });
    std::size_t const count_new = part->count_new();
    each_share([&](std::uint32_t c) { part->number(f, done, c); });
    done += count_new;
  }
  if (part) each_share([&](std::uint32_t s) { part->write_numbers(s); });
  *f.count = done;
}

}  // namespace gpups::kernels
