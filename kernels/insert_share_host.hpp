// SPDX-License-Identifier: Apache-2.0
// Finding and inserting the keys of one share, by one thread. Nearly every key is found, or put in, at its first bucket
// and without a branch; the others wait as in a search. A key that would leave the share's buckets waits until all
// shares are done.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/index_keys.hpp"
#include "kernels/key_shares.hpp"

namespace gpups::kernels {

// A share's keys, and what is known of them afterwards.
struct InsertedShare {
  Array<std::uint32_t> places;  // of the batch, ascending
  Array<std::uint32_t> found;   // their numbers; of a new key: kNewKey + the first place of an equal one
  // Of the new keys: their first places, and where their numbers belong.
  std::size_t new_count = 0;
  Array<std::uint32_t> new_places;
  Array<std::uint32_t*> new_numbers;
  std::size_t new_in_chunk[kSharesMax] = {};
  std::vector<std::size_t> beyond_limit;  // which keys are neither found nor in yet

  void reserve(std::size_t keys) {
    // Room for what is written and not kept.
    places = Array<std::uint32_t>(Device::host(), keys);
    found = Array<std::uint32_t>(Device::host(), keys);
    new_places = Array<std::uint32_t>(Device::host(), keys + 1);
    new_numbers = Array<std::uint32_t*>(Device::host(), keys + 1);
  }
};

class ShareInsertion {
 public:
  // The share's keys are those of the batch `keys` at share.places.
  ShareInsertion(Buckets const& buckets, Share range, View<Key const> keys, InsertedShare& share)
      : buckets_(buckets),
        keys_(keys.data()),
        share_(share),
        old_limit_(range.limit(buckets_.old)),
        grown_limit_(range.limit(buckets_.grown)),
        edge_(std::min(range.edge(buckets_.old), range.edge(buckets_.grown))) {}

  void run() {
    std::size_t const n = share_.places.size();
    for (std::size_t k = 0; k < kFar + kGroup; k += kGroup) place(k);
    for (std::size_t k = 0; k < kFar; ++k) __builtin_prefetch(bucket_[k], 0, kSecondLevel);
    std::size_t waiting = 0;
    for (std::size_t group = 0; group < n; group += kGroup) {
      // Those of the group before: their second buckets are on the way since.
      std::size_t const waited = waiting;
      waiting = look(group, std::min(group + kGroup, n), waiting);
      for (std::size_t w = 0; w < waited; ++w) find_or_insert(waiting_[w], false);
      std::copy(waiting_ + waited, waiting_ + waiting, waiting_);
      waiting -= waited;
      place(group + kFar + kGroup);
    }
    for (std::size_t w = 0; w < waiting; ++w) find_or_insert(waiting_[w], false);
  }
  // REQUIRES: all shares have run.
  void insert_beyond_limit() {
    old_limit_ = buckets_.old.size;
    grown_limit_ = buckets_.grown.size;
    for (std::size_t const k : share_.beyond_limit) find_or_insert(k, true);
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 8, kRing = 128;
  static constexpr int kSecondLevel = 2;

  // Where the search for each key of a group begins. Past the last group it is where earlier ones began.
  void place(std::size_t first) {
    std::size_t const n = share_.places.size();
    if (first >= n) return;
    std::size_t const count = std::min(kGroup, n - first);
    // Copies, which no store below can change, so that the loop is vectorised.
    Buckets const buckets = buckets_;
    std::uint64_t const edge = edge_;
    std::uint32_t const* const places = share_.places.data() + first;
    Bucket** const bucket = bucket_ + first % kRing;
    std::uint32_t* const tag = tag_ + first % kRing;
    Key* const key = key_ + first % kRing;
    for (std::size_t k = 0; k < count; ++k) key[k] = keys_[places[k]];
    for (std::size_t k = 0; k < count; ++k) {
      std::uint64_t const hash = hash_of(key[k]);
      tag[k] = went_on(hash);
      Bucket* const its_own = buckets.first(hash);
      bucket[k] = (hash & 0xFFFFFFFF) < edge ? its_own : &elsewhere_;
    }
  }

  // Keys first .. last - 1, at their first buckets. A key that is absent goes in at once if there is room and no key of
  // its tag went on; what is written for the others goes nowhere. Those for whom this is not all are listed behind
  // `waiting` others; returns how many there are then. Without a branch.
  std::size_t look(std::size_t first, std::size_t last, std::size_t waiting) {
    // Copies, which no store below can change.
    std::uint32_t const* const places = share_.places.data();
    std::uint32_t *const found_numbers = share_.found.data(), *const new_places = share_.new_places.data();
    std::uint32_t** const new_numbers = share_.new_numbers.data();
    std::size_t new_count = share_.new_count;
    for (std::size_t k = first; k < last; ++k) {
      __builtin_prefetch(bucket_[(k + kFar) % kRing], 0, kSecondLevel);
      __builtin_prefetch(bucket_[(k + kNear) % kRing]);
      Bucket* const bucket = bucket_[k % kRing];
      Key const key = key_[k % kRing];
      std::uint32_t const marks = bucket->marks, found = bucket->place_of(key), free = ~marks & kAllPlaces;
      unsigned const absent = found == 0 ? 1 : 0;
      unsigned const ends_here = ((marks & tag_[k % kRing]) == 0 ? 1U : 0U) & (free != 0 ? 1U : 0U);
      unsigned const goes_in = absent & ends_here, waits = absent & ~ends_here;

      auto const* const numbers = reinterpret_cast<std::uint32_t const*>(bucket) + 2 * kBucketKeys;
      std::uint32_t const id = numbers[__builtin_ctz(found | 1U << kBucketKeys)];  // of none: the marks
      std::uint32_t const as_new = kNewKey | places[k];
      found_numbers[k] = as_new ^ ((as_new ^ id) & (absent - 1));

      unsigned const at = static_cast<unsigned>(__builtin_ctz(free | 1U << (kBucketKeys - 1)));
      Bucket* const choices[2] = {&nowhere_, bucket};
      Bucket* const to = choices[goes_in];
      to->key[at] = number(key);
      to->id[at] = as_new;
      to->marks = marks | 1U << at;
      new_places[new_count] = places[k];
      new_numbers[new_count] = to->id + at;
      new_count += goes_in;
      waiting_[waiting] = k;
      waiting += waits;
      Bucket* const next[2] = {&nowhere_, bucket + 1};
      __builtin_prefetch(next[waits], 0, kSecondLevel);
    }
    share_.new_count = new_count;
    return waiting;
  }

  void find_or_insert(std::size_t k, bool may_wrap) {
    std::uint32_t const i = share_.places[k];
    Key const key = keys_[i];
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
        share_.found[k] = b.id[lowest_bit(found)];
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
      share_.beyond_limit.push_back(k);
      return;
    }
    unsigned const at = lowest_bit(~room->marks & kAllPlaces);
    room->key[at] = number(key);
    room->id[at] = share_.found[k] = kNewKey | i;
    room->marks |= 1U << at;
    share_.new_places[share_.new_count] = i;
    share_.new_numbers[share_.new_count++] = room->id + at;
  }

  Buckets buckets_;
  Key const* keys_;
  InsertedShare& share_;
  std::uint32_t old_limit_, grown_limit_;
  std::uint64_t edge_;  // see Share

  // Of the keys from the one that is looked at on: key k's at k % kRing.
  Key key_[kRing];
  std::uint32_t tag_[kRing];
  Bucket* bucket_[kRing] = {};
  std::size_t waiting_[2 * kGroup + 1];
  // What is seen and changed in place of a bucket: of one that other shares have keys in, and where nothing is to be
  // put in.
  Bucket elsewhere_{{}, {}, ~kAllPlaces}, nowhere_{};
};

}  // namespace gpups::kernels
