// SPDX-License-Identifier: Apache-2.0
// Finding and inserting the keys of one share, by one thread. Nearly every key is found, or put in, at its first bucket
// and without a branch. The others wait until all have been looked at, for their second bucket, and in the end for
// those behind it. A key that would leave the share's buckets waits until all shares are done.
//
// Keys are put in out of order, but equal ones in order: what makes one wait does not end before it is in, so those
// behind it wait as well.
#pragma once

#include <algorithm>

#include "kernels/bucket_host.hpp"
#include "kernels/index_keys.hpp"
#include "kernels/inserted_share.hpp"
#include "kernels/key_shares.hpp"

namespace gpups::kernels {

class ShareInsertion {
 public:
  // The share's keys are those of the batch `keys` at share.places.
  ShareInsertion(Buckets const& buckets, HashShare range, View<Key const> keys, InsertedShare& share)
      : buckets_(buckets),
        keys_(keys.data()),
        share_(share),
        old_limit_(range.limit(buckets_.old)),
        grown_limit_(range.limit(buckets_.grown)),
        edge_(std::min(range.edge(buckets_.old), range.edge(buckets_.grown))),
        new_numbers_{share.new_numbers.data(), share.new_count} {}

  void run() {
    std::size_t const n = share_.size;
    for (std::size_t k = 0; k < kFar + 2 * kGroup; k += kGroup) place(k);
    for (std::size_t k = 0; k < kFar; ++k) __builtin_prefetch(bucket_[k], 0, kSecondLevel);
    std::size_t waiting = 0;
    for (std::size_t group = 0; group < n; group += kGroup) {
      waiting = look(group, waiting);
      place(group + kFar + 2 * kGroup);
    }
    waiting = look_further(waiting);
    ahead_of_each(
        waiting, [&](Bucket const* bucket) { __builtin_prefetch(bucket + 2); },
        [&](std::size_t k, Bucket*) { find_or_insert(k, false); });
    share_.new_count = new_numbers_.count;
  }
  // REQUIRES: all shares have run.
  void insert_beyond_limit() {
    old_limit_ = buckets_.old.size;
    grown_limit_ = buckets_.grown.size;
    for (std::size_t const k : share_.beyond_limit) find_or_insert(k, true);
    share_.new_count = new_numbers_.count;
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 16, kRing = 128, kAhead = 16;

  // A list with room for one that is written and not kept.
  struct NewNumbers {
    std::uint32_t** number;
    std::size_t count;
  };

  // Where the search for each key of a group begins; past the last key, that of the last. Past the last group it is
  // where earlier ones began.
  void place(std::size_t first) {
    std::size_t const n = share_.size;
    if (first >= n) return;
    std::uint32_t const* const places = share_.places.data();
    Key* const key = key_ + first % kRing;
    if (first + kGroup <= n) {
      for (std::size_t k = 0; k < kGroup; ++k) key[k] = keys_[places[first + k]];
    } else {
      for (std::size_t k = 0; k < kGroup; ++k) key[k] = keys_[places[std::min(first + k, n - 1)]];
    }
    Buckets const buckets = buckets_;  // a copy, which no store below can change
    for (std::size_t k = 0; k < kGroup; k += kKeysOfVector) {
      KeyWords const hash = hashes_of(key + k), its_own = first_buckets(buckets, hash);
      KeyWords const elsewhere = reinterpret_cast<std::uintptr_t>(elsewhere_) - KeyWords{};
      KeyWords const address = (hash & 0xFFFFFFFF) < edge_ ? its_own : elsewhere;
      std::memcpy(bucket_ + first % kRing + k, &address, sizeof address);
      store_tags(hash, tag_ + first % kRing + k);
    }
  }

  // The group of keys from `first` on, at their first buckets. A key that is absent goes in at once if there is room
  // and no key of its tag went on. Those for whom this is not all are listed. Without a branch, and in few
  // instructions: the more keys a core has in flight, the less it waits. Returns how many wait.
  std::size_t look(std::size_t first, std::size_t waiting) {
    // Copies, which no store below can change.
    std::size_t const count = std::min(kGroup, share_.size - first);
    std::uint32_t const* const places = share_.places.data() + first;
    std::uint32_t *const found_numbers = share_.found.data() + first, *const list = share_.waiting.data();
    Key const* const keys = key_ + first % kRing;
    std::uint8_t const* const tags = tag_ + first % kRing;
    Bucket *const *const buckets = bucket_ + first % kRing, *const *const near = bucket_ + (first + kNear) % kRing,
                         *const *const far = bucket_ + (first + kFar) % kRing;
    NewNumbers new_numbers = new_numbers_;
    for (std::size_t k = 0; k < count; ++k) {
      __builtin_prefetch(far[k], 0, kSecondLevel);
      __builtin_prefetch(near[k]);
      Bucket* const bucket = buckets[k];
      std::uint32_t const marks = bucket->marks, found = bucket->place_of(keys[k]), as_new = kNewKey | places[k];
      unsigned const absent = is_none(found);
      unsigned const ends_here = ~(marks >> tags[k]) & has_room(marks);
      found_numbers[k] = number_in(bucket, found, as_new);
      put(new_numbers, absent & ends_here, bucket, marks, keys[k], as_new);
      list[waiting] = static_cast<std::uint32_t>(first + k);
      waiting += absent & ~ends_here;
    }
    new_numbers_ = new_numbers;
    return waiting;
  }

  // The first `count` waiting keys at their first two buckets. Returns how many wait for others, and are the first now.
  std::size_t look_further(std::size_t count) {
    std::size_t waiting = 0;
    ahead_of_each(
        count, [&](Bucket const* bucket) { __builtin_prefetch(bucket + 1); },
        [&](std::size_t k, Bucket* first) {
          share_.waiting[waiting] = static_cast<std::uint32_t>(k);
          waiting += look_at_two(k, first) ? 0 : 1;
        });
    return waiting;
  }
  // Calls look(key, its first bucket) for the first `count` waiting keys, and ask(its first bucket) some keys before.
  template <class Ask, class Look>
  void ahead_of_each(std::size_t count, Ask ask, Look look) {
    Bucket* first[kAhead];
    for (std::size_t w = 0; w < count + kAhead; ++w) {
      Bucket*& bucket = first[w % kAhead];
      if (w >= kAhead) look(share_.waiting[w - kAhead], bucket);
      if (w >= count) continue;
      std::uint64_t const hash = hash_of(keys_[share_.places[share_.waiting[w]]]);
      bucket = (hash & 0xFFFFFFFF) < edge_ ? buckets_.first(hash) : elsewhere_;
      ask(bucket);
    }
  }
  // Returns whether nothing else is to be done for key k.
  bool look_at_two(std::size_t k, Bucket* first) {
    if (first == elsewhere_) return false;
    Bucket* const next = first + 1;
    std::uint32_t const as_new = kNewKey | share_.places[k];
    Key const key = keys_[share_.places[k]];
    std::uint32_t const tag = went_on(hash_of(key)), marks = first->marks, next_marks = next->marks;
    std::uint32_t const in_first = first->place_of(key), found = in_first | next->place_of(key);
    unsigned const absent = ((marks & tag) == 0 ? 1U : 0U) | ((next_marks & tag) == 0 ? 1U : 0U);
    if (found == 0 && (absent & (has_room(marks) | has_room(next_marks))) == 0) {
      __builtin_prefetch(next + 1, 0, kSecondLevel);
      return false;
    }
    Bucket* const both[2] = {first, next};
    share_.found[k] = number_in(both[in_first == 0 ? 1 : 0], found, as_new);
    unsigned const goes_in = found == 0 ? 1 : 0, to_next = 1 - has_room(marks);
    first->marks = marks | ((0 - (goes_in & to_next)) & tag);
    put(new_numbers_, goes_in, both[to_next], to_next != 0 ? next_marks : marks, key, as_new);
    return true;
  }

  static unsigned has_room(std::uint32_t marks) { return (~marks & kAllPlaces) != 0 ? 1 : 0; }

  // The number that is at place `found` of a bucket; of a key that is at none: `as_new`.
  [[gnu::always_inline]] static std::uint32_t number_in(Bucket const* bucket, std::uint32_t found,
                                                        std::uint32_t as_new) {
    return as_new ^ ((as_new ^ number_at(*bucket, found)) & (is_none(found) - 1));
  }

  // Puts a key into a bucket that has these marks, and room, if goes_in is 1. If it is 0 what is written goes nowhere.
  [[gnu::always_inline]] void put(NewNumbers& list, unsigned goes_in, Bucket* bucket, std::uint32_t marks, Key key,
                                  std::uint32_t as_new) {
    auto const at = static_cast<unsigned>(__builtin_ctz((~marks & kAllPlaces) | 1U << (kBucketKeys - 1)));
    auto const nowhere = reinterpret_cast<std::uintptr_t>(&nowhere_);
    auto* const to = reinterpret_cast<Bucket*>(
        nowhere ^ ((nowhere ^ reinterpret_cast<std::uintptr_t>(bucket)) & -std::uintptr_t{goes_in}));
    to->key[at] = number(key);
    to->id[at] = as_new;
    to->marks = marks | 1U << at;
    list.number[list.count] = to->id + at;
    list.count += goes_in;
  }

  // The search for a key that may be anywhere in the share's buckets.
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
    share_.found[k] = kNewKey | i;
    put(new_numbers_, 1, room, room->marks, key, kNewKey | i);
  }

  Buckets buckets_;
  Key const* keys_;
  InsertedShare& share_;
  std::uint32_t old_limit_, grown_limit_;
  std::uint64_t edge_;  // see Share
  NewNumbers new_numbers_;

  // Of the keys from the one that is looked at on: key k's at k % kRing.
  Key key_[kRing];
  std::uint8_t tag_[kRing];
  Bucket* bucket_[kRing] = {};
  // What is seen and changed in place of a bucket: of one that other shares have keys in, and where nothing is to be
  // put in.
  Bucket elsewhere_[2] = {{{}, {}, ~kAllPlaces}}, nowhere_{};
};

}  // namespace gpups::kernels
