// SPDX-License-Identifier: Apache-2.0
// Finding and inserting the keys of one share, by one thread. Nearly every key is found, or put in, at its first bucket
// and without a branch; the others are listed until their second bucket, or in the end a third, is there. A key that
// would leave the share's buckets waits until all shares are done.
//
// Keys are put in out of order, but equal ones in order: what makes one wait does not end before it is in, so those
// behind it wait as well.
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
        edge_(std::min(range.edge(buckets_.old), range.edge(buckets_.grown))),
        new_keys_{share.new_places.data(), share.new_numbers.data(), share.new_count} {}

  void run() {
    std::size_t const n = share_.places.size();
    for (std::size_t k = 0; k < kFar + kGroup; k += kGroup) place(k);
    for (std::size_t k = 0; k < kFar; ++k) __builtin_prefetch(bucket_[k], 0, kSecondLevel);
    for (std::size_t group = 0; group < n; group += kGroup) {
      look(group, std::min(group + kGroup, n));
      look_again(group);
      place(group + kFar + kGroup);
    }
    look_again(n + 2 * kFar);
    share_.new_count = new_keys_.count;
  }
  // REQUIRES: all shares have run.
  void insert_beyond_limit() {
    old_limit_ = buckets_.old.size;
    grown_limit_ = buckets_.grown.size;
    for (std::size_t const k : share_.beyond_limit) find_or_insert(k, true);
    share_.new_count = new_keys_.count;
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 8, kRing = 256;
  static constexpr int kSecondLevel = 2;

  // Keys for which a bucket is on its way.
  struct Waiting {
    std::size_t key[kRing];
    std::size_t listed = 0, taken = 0;

    void add(std::size_t k) { key[listed++ % kRing] = k; }
    std::size_t take() { return key[taken++ % kRing]; }
    bool any_before(std::size_t now, std::size_t distance) const {
      return taken < listed && key[taken % kRing] + distance < now;
    }
  };
  // Lists with room for one that is written and not kept.
  struct NewKeys {
    std::uint32_t* places;
    std::uint32_t** numbers;
    std::size_t count;
  };

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
  // its tag went on. Those for whom this is not all are listed. Without a branch.
  void look(std::size_t first, std::size_t last) {
    // Copies, which no store below can change.
    std::uint32_t const* const places = share_.places.data();
    std::uint32_t* const found_numbers = share_.found.data();
    NewKeys new_keys = new_keys_;
    std::size_t waiting = for_second_.listed;
    for (std::size_t k = first; k < last; ++k) {
      __builtin_prefetch(bucket_[(k + kFar) % kRing], 0, kSecondLevel);
      __builtin_prefetch(bucket_[(k + kNear) % kRing]);
      Bucket* const bucket = bucket_[k % kRing];
      Key const key = key_[k % kRing];
      std::uint32_t const marks = bucket->marks, found = bucket->place_of(key);
      unsigned const absent = found == 0 ? 1 : 0;
      unsigned const ends_here = ((marks & tag_[k % kRing]) == 0 ? 1U : 0U) & has_room(marks);
      found_numbers[k] = number_in(bucket, found, places[k]);
      put(new_keys, absent & ends_here, bucket, marks, key, places[k]);
      unsigned const waits = absent & ~ends_here;
      for_second_.key[waiting % kRing] = k;
      waiting += waits;
      Bucket* const next[2] = {&nowhere_, bucket + 1};
      __builtin_prefetch(next[waits], 0, kSecondLevel);
    }
    new_keys_ = new_keys;
    for_second_.listed = waiting;
  }

  // Those whose next bucket has been on its way while kFar others were looked at, when key `now` is next.
  void look_again(std::size_t now) {
    while (for_second_.any_before(now, kFar)) look_further(for_second_.take());
    while (for_third_.any_before(now, 2 * kFar)) find_or_insert(for_third_.take(), false);
  }

  // A key at its first two buckets.
  void look_further(std::size_t k) {
    Bucket *const first = bucket_[k % kRing], *const next = first + 1;
    if (first == &elsewhere_) return find_or_insert(k, false);
    Key const key = key_[k % kRing];
    std::uint32_t const tag = tag_[k % kRing], marks = first->marks, next_marks = next->marks;
    std::uint32_t const in_first = first->place_of(key), found = in_first | next->place_of(key);
    unsigned const absent = ((marks & tag) == 0 ? 1U : 0U) | ((next_marks & tag) == 0 ? 1U : 0U);
    unsigned const decided = (found != 0 ? 1U : 0U) | (absent & (has_room(marks) | has_room(next_marks)));
    if (decided == 0) {
      __builtin_prefetch(next + 1, 0, kSecondLevel);
      return for_third_.add(k);
    }
    Bucket* const both[2] = {first, next};
    share_.found.data()[k] = number_in(both[in_first == 0 ? 1 : 0], found, share_.places.data()[k]);
    unsigned const goes_in = found == 0 ? 1 : 0, to_next = 1 - has_room(marks);
    first->marks = marks | ((0 - (goes_in & to_next)) & tag);
    put(new_keys_, goes_in, both[to_next], to_next != 0 ? next_marks : marks, key, share_.places.data()[k]);
  }

  static unsigned has_room(std::uint32_t marks) { return (~marks & kAllPlaces) != 0 ? 1 : 0; }

  // The number that is at place `found` of a bucket; of a key that is at none, what it has as a new one.
  [[gnu::always_inline]] static std::uint32_t number_in(Bucket const* bucket, std::uint32_t found,
                                                        std::uint32_t place) {
    auto const* const numbers = reinterpret_cast<std::uint32_t const*>(bucket) + 2 * kBucketKeys;
    std::uint32_t const id = numbers[__builtin_ctz(found | 1U << kBucketKeys)];  // of none: the marks
    std::uint32_t const as_new = kNewKey | place;
    return as_new ^ ((as_new ^ id) & ((found == 0 ? 1U : 0U) - 1));
  }

  // Puts a key into a bucket that has these marks, and room, if goes_in is 1. If it is 0 what is written goes nowhere.
  [[gnu::always_inline]] void put(NewKeys& list, unsigned goes_in, Bucket* bucket, std::uint32_t marks, Key key,
                                  std::uint32_t place) {
    auto const at = static_cast<unsigned>(__builtin_ctz((~marks & kAllPlaces) | 1U << (kBucketKeys - 1)));
    Bucket* const choices[2] = {&nowhere_, bucket};
    Bucket* const to = choices[goes_in];
    to->key[at] = number(key);
    to->id[at] = kNewKey | place;
    to->marks = marks | 1U << at;
    list.places[list.count] = place;
    list.numbers[list.count] = to->id + at;
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
    put(new_keys_, 1, room, room->marks, key, i);
  }

  Buckets buckets_;
  Key const* keys_;
  InsertedShare& share_;
  std::uint32_t old_limit_, grown_limit_;
  std::uint64_t edge_;  // see Share
  NewKeys new_keys_;

  // Of the keys from the one that is looked at on: key k's at k % kRing.
  Key key_[kRing];
  std::uint32_t tag_[kRing];
  Bucket* bucket_[kRing] = {};
  Waiting for_second_, for_third_;
  // What is seen and changed in place of a bucket: of one that other shares have keys in, and where nothing is to be
  // put in.
  Bucket elsewhere_{{}, {}, ~kAllPlaces}, nowhere_{};
};

}  // namespace gpups::kernels
