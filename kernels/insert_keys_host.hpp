// SPDX-License-Identifier: Apache-2.0
// Finding and inserting on the host, without atomic operations: each thread has a share of the hashes, which is a range
// of buckets, and picks its own keys out of all. Nearly every key is found, or put in, at its first bucket and without
// a branch; the others wait as in a search. A key that would leave its thread's range waits until all are done.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/index_keys.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kSharesMax = 32;

// Some of the hashes: a stretch of their low halves.
struct Share {
  std::uint32_t number, count;

  std::uint64_t begin() const { return ((std::uint64_t{number} << 32) + count - 1) / count; }
  std::uint64_t end() const { return Share{number + 1, count}.begin(); }
  // The buckets of an array that no later share has keys in.
  std::uint32_t limit(BucketArray const& array) const { return number + 1 == count ? array.size : array.place(end()); }
  // The first low half whose place in the array is not below the limit.
  std::uint64_t edge(BucketArray const& array) const {
    if (number + 1 == count || array.size == 0) return end();
    return ((std::uint64_t{limit(array)} << 32) + array.size - 1) / array.size;
  }
};

// Keys of one share, in the order of the batch.
class ShareInsertion {
 public:
  ShareInsertion() = default;
  ShareInsertion(InsertKeys const& insert, Share share)
      : f_(insert),
        buckets_(insert.index.buckets),
        share_(share),
        old_limit_(share.limit(buckets_.old)),
        grown_limit_(share.limit(buckets_.grown)),
        edge_(std::min(share.edge(buckets_.old), share.edge(buckets_.grown))) {}

  void run() {
    for (std::size_t i = 0; i < f_.index.keys.size();) {
      i = pick(i);
      insert_picked();
    }
  }
  // Those whose buckets are not, or not all, below the share's limit. REQUIRES: all shares have run.
  void insert_beyond_limit() {
    old_limit_ = buckets_.old.size;
    grown_limit_ = buckets_.grown.size;
    for (std::uint32_t const i : beyond_limit_) find_or_insert(i, true);
  }

 private:
  static constexpr std::size_t kBlock = 1024, kGroup = 16, kFar = 48, kNear = 8;
  static constexpr int kSecondLevel = 2;

  // Lists the next keys of the share, from place i on; returns the place after them.
  std::size_t pick(std::size_t i) {
    std::size_t const n = f_.index.keys.size();
    Key const* const keys = f_.index.keys.data();
    std::uint64_t const begin = share_.begin(), own = share_.end() - begin,
                        inner = std::max(std::min(edge_, share_.end()), begin) - begin;
    count_ = 0;
    while (i < n && count_ + kGroup <= kBlock) {
      std::size_t const size = std::min(kGroup, n - i);
      std::uint64_t hash[kGroup];
      for (std::size_t k = 0; k < size; ++k) hash[k] = hash_of(keys[i + k]);
      for (std::size_t k = 0; k < size; ++k) {
        place_[count_] = static_cast<std::uint32_t>(i + k);
        key_[count_] = keys[i + k];
        bucket_[count_] = buckets_.first(hash[k]);
        tag_[count_] = went_on(hash[k]);
        std::uint64_t const from_begin = (hash[k] & 0xFFFFFFFF) - begin;
        count_ += from_begin < inner ? 1 : 0;
        // A bucket that the next share has keys in, too.
        if (from_begin >= inner && from_begin < own) beyond_limit_.push_back(static_cast<std::uint32_t>(i + k));
      }
      i += size;
    }
    return i;
  }

  void insert_picked() {
    // Past the last key, the last one's bucket.
    for (std::size_t k = 0; k < kFar; ++k) bucket_[count_ + k] = count_ > 0 ? bucket_[count_ - 1] : &nowhere_;
    for (std::size_t k = 0; k < std::min(kFar, count_); ++k) __builtin_prefetch(bucket_[k], 0, kSecondLevel);
    waiting_count_ = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      __builtin_prefetch(bucket_[k + kFar], 0, kSecondLevel);
      __builtin_prefetch(bucket_[k + kNear]);
      look(k);
    }
    for (std::size_t w = 0; w < waiting_count_; ++w) {
      if (w + kNear < waiting_count_) __builtin_prefetch(bucket_[waiting_[w + kNear]] + 1);
      find_or_insert(place_[waiting_[w]], false);
    }
  }

  // One that is absent goes in at once if its first bucket has room and no key of its tag went on; what is written for
  // the others goes nowhere.
  [[gnu::always_inline]] void look(std::size_t k) {
    Bucket* const bucket = bucket_[k];
    std::uint32_t const marks = bucket->marks, found = bucket->place_of(key_[k]);
    std::uint32_t const free = ~marks & kAllPlaces, i = place_[k];
    bool const ends_here = (marks & tag_[k]) == 0 && free != 0, in = found == 0 && ends_here;
    auto const* const ids = reinterpret_cast<std::uint32_t const*>(bucket) + 2 * kBucketKeys;
    std::uint32_t const id = ids[__builtin_ctz(found | 1U << kBucketKeys)];  // of none: the marks

    unsigned const at = static_cast<unsigned>(__builtin_ctz(free | 1U << (kBucketKeys - 1)));
    Bucket* const to = in ? bucket : &nowhere_;
    to->key[at] = number(key_[k]);
    to->id[at] = kNewKey | i;
    to->marks = marks | 1U << at;
    f_.number_of[i] = to->id + at;
    f_.index.ids[i] = found != 0 ? id : kNewKey | i;
    waiting_[waiting_count_] = static_cast<std::uint32_t>(k);
    waiting_count_ += (found == 0 ? 1U : 0U) & (ends_here ? 0U : 1U);
  }

  void find_or_insert(std::uint32_t i, bool may_wrap) {
    Key const key = f_.index.keys[i];
    std::uint64_t const hash = hash_of(key);
    bool const moved = buckets_.old.place(hash) < buckets_.moved;
    BucketArray const& array = moved ? buckets_.grown : buckets_.old;
    std::uint32_t const limit = moved ? grown_limit_ : old_limit_;
    Bucket* room = nullptr;  // the first bucket that has some
    bool absent = may_wrap;  // so it is when all buckets have been looked at
    for (std::uint32_t at = array.place(hash), steps = 0; at < limit && steps < array.size; ++steps) {
      Bucket& b = array.bucket[at];
      std::uint32_t const found = b.place_of(key);
      if (found != 0) {
        f_.index.ids[i] = b.id[lowest_bit(found)];
        return;
      }
      if (room == nullptr && (b.marks & kAllPlaces) != kAllPlaces) room = &b;
      bool const ends = (b.marks & went_on(hash)) == 0;
      absent |= ends;
      if (ends && room != nullptr) break;
      if (ends) b.marks |= went_on(hash);
      at = may_wrap ? array.next(at) : at + 1;
    }
    if (!absent || room == nullptr) {
      beyond_limit_.push_back(i);
      return;
    }
    unsigned const at = lowest_bit(~room->marks & kAllPlaces);
    room->key[at] = number(key);
    room->id[at] = f_.index.ids[i] = kNewKey | i;
    room->marks |= 1U << at;
    f_.number_of[i] = room->id + at;
  }

  InsertKeys f_{};
  Buckets buckets_{};
  Share share_{};
  std::uint32_t old_limit_ = 0, grown_limit_ = 0;
  std::uint64_t edge_ = 0;                   // see Share
  std::vector<std::uint32_t> beyond_limit_;  // places

  // The keys of a block that are the share's.
  std::size_t count_ = 0, waiting_count_ = 0;
  Key key_[kBlock + 1];
  std::uint32_t place_[kBlock + 1], tag_[kBlock + 1];
  Bucket* bucket_[kBlock + kFar + 1];
  std::uint32_t waiting_[kBlock + 1];
  Bucket nowhere_{};
};

inline void insert_keys(HostExec ex, InsertKeys const& f) {
  std::size_t const n = f.index.keys.size();
  std::size_t const threads = std::min<std::size_t>(static_cast<std::size_t>(ex.arena->threads()), kSharesMax);
  auto const shares = static_cast<std::uint32_t>(std::clamp<std::size_t>(n / 1024, 1, threads));
  std::vector<ShareInsertion> insertions;
  for (std::uint32_t s = 0; s < shares; ++s) insertions.emplace_back(f, Share{s, shares});
  ex.arena->blocks(shares, [&](std::size_t s) { insertions[s].run(); });
  for (auto& insertion : insertions) insertion.insert_beyond_limit();

  // Without a branch; the list has room for what is written and not kept.
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    f.new_places[count] = static_cast<std::uint32_t>(i);
    count += f.index.ids[i] == (kNewKey | i) ? 1 : 0;
  }
  *f.count = count;
}

}  // namespace gpups::kernels
