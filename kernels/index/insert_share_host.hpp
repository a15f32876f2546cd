// SPDX-License-Identifier: Apache-2.0
// Finds and inserts the keys of one share, on one thread. Nearly every key is found in its first bucket, or inserted
// into it, without a branch. The other keys wait until all first buckets have been searched; then they are searched in
// their second buckets, and last in the buckets after these. A key that would leave the buckets of the share waits
// until all shares are done.
//
// Keys are inserted out of order, but equal keys in order: the reason for which a key waits lasts until the key is
// inserted, so equal keys after it wait as well.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/index/bucket_host.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/key_shares.hpp"

namespace gpups::kernels {

// One share of the keys of a batch, and the results of their insertion.
struct InsertedShare {
  std::size_t size = 0;
  Array<std::uint32_t> places;  // (size): their positions in the batch, ascending
  Array<std::uint32_t> found;   // (size): their numbers; of a new key: kNewKey + the first position of an equal one
  // The addresses of the numbers of new keys in the index. Until its number is known, that of a new key is kNewKey +
  // its first position.
  std::size_t new_count = 0;
  Array<std::uint32_t*> new_numbers;
  std::size_t new_in_chunk[kSharesMax] = {};
  bool repeats_new_keys = false;
  Array<std::uint32_t> waiting;           // keys that wait, see ShareInsertion
  std::vector<std::size_t> beyond_limit;  // keys that would leave the buckets of the share

  // Prepares for `keys` keys of the next part.
  void begin(std::size_t keys) {
    size = keys;
    new_count = 0;
    beyond_limit.clear();
    if (keys < found.size()) return;
    // Room for one element that is written and not kept, and for later parts with somewhat more keys of this share.
    std::size_t const room = keys + keys / 4 + 1;
    places = Array<std::uint32_t>(Device::host(), room);
    found = Array<std::uint32_t>(Device::host(), room);
    new_numbers = Array<std::uint32_t*>(Device::host(), room);
    waiting = Array<std::uint32_t>(Device::host(), room);
  }
};

// The insertion of the keys of one share.
class ShareInsertion {
 public:
  // keys: those of the batch; share.places: the positions of the share's keys among them.
  ShareInsertion(Buckets const& buckets, HashShare range, View<Key const> keys, InsertedShare& share)
      : buckets_(buckets),
        keys_(keys.data()),
        share_(share),
        old_limit_(range.limit(buckets_.old)),
        grown_limit_(range.limit(buckets_.grown)),
        near_limit_(std::min(range.near_limit(buckets_.old), range.near_limit(buckets_.grown))),
        new_numbers_{share.new_numbers.data(), share.new_count} {}

  // Finds or inserts all keys that do not leave the buckets of the share.
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
  // Finds or inserts the other keys. REQUIRES: run() has been called for all shares.
  void insert_beyond_limit() {
    old_limit_ = buckets_.old.size;
    grown_limit_ = buckets_.grown.size;
    for (std::size_t const k : share_.beyond_limit) find_or_insert(k, true);
    share_.new_count = new_numbers_.count;
  }

 private:
  static constexpr std::size_t kGroup = 16, kFar = 48, kNear = 16, kRing = 128, kAhead = 16;

  // A list with room for one element that is written and not kept.
  struct NewNumbers {
    std::uint32_t** number;
    std::size_t count;
  };

  // Computes the first bucket of each key of a group. Past the last key of the share, the last key is repeated; past
  // the last group, the ring keeps buckets of earlier keys.
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
    Buckets const buckets = buckets_;  // a copy: the compiler knows that no store below changes it
    for (std::size_t k = 0; k < kGroup; k += kKeysOfVector) {
      KeyWords const hash = hashes_of(key + k), its_own = first_buckets(buckets, hash);
      KeyWords const elsewhere = reinterpret_cast<std::uintptr_t>(elsewhere_) - KeyWords{};
      KeyWords const address = (hash & 0xFFFFFFFF) < near_limit_ ? its_own : elsewhere;
      std::memcpy(bucket_ + first % kRing + k, &address, sizeof address);
      store_tags(hash, tag_ + first % kRing + k);
    }
  }

  // Searches the group of keys from `first` on in their first buckets. An absent key is inserted at once if the bucket
  // has room and no key of its tag has passed it. Keys that are neither found nor inserted are added to the list of
  // waiting keys, which has `waiting` elements. Returns the new length of the list. Has no branches and few
  // instructions: the more keys a core has in flight, the less it waits.
  std::size_t look(std::size_t first, std::size_t waiting) {
    // Copies: the compiler knows that no store below changes them.
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

  // Searches the first `count` waiting keys in their first two buckets. Moves those that still wait to the beginning of
  // the list, and returns their number.
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
  // Calls look(k, first bucket of key k) for the first `count` waiting keys k, and prefetch(first bucket) kAhead keys
  // before.
  template <class Prefetch, class Look>
  void ahead_of_each(std::size_t count, Prefetch prefetch, Look look) {
    Bucket* first[kAhead];
    for (std::size_t w = 0; w < count + kAhead; ++w) {
      Bucket*& bucket = first[w % kAhead];
      if (w >= kAhead) look(share_.waiting[w - kAhead], bucket);
      if (w >= count) continue;
      std::uint64_t const hash = hash_of(keys_[share_.places[share_.waiting[w]]]);
      bucket = (hash & 0xFFFFFFFF) < near_limit_ ? buckets_.first(hash) : elsewhere_;
      prefetch(bucket);
    }
  }
  // Searches key k in its first two buckets. Returns whether it was found or inserted.
  bool look_at_two(std::size_t k, Bucket* first) {
    if (first == elsewhere_) return false;
    Bucket* const next = first + 1;
    std::uint32_t const as_new = kNewKey | share_.places[k];
    Key const key = keys_[share_.places[k]];
    std::uint32_t const tag = tag_mask(hash_of(key)), marks = first->marks, next_marks = next->marks;
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

  // Returns the number at place `found` of a bucket, or `as_new` if `found` is 0.
  [[gnu::always_inline]] static std::uint32_t number_in(Bucket const* bucket, std::uint32_t found,
                                                        std::uint32_t as_new) {
    return as_new ^ ((as_new ^ number_at(*bucket, found)) & (is_none(found) - 1));
  }

  // Inserts a key into a bucket that has these marks and room, if goes_in is 1. If goes_in is 0, the stores go to
  // nowhere_.
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

  // Searches key k in all buckets of the share from its first one on, and inserts it if it is absent. may_wrap:
  // searches all buckets of the array, from the last one on to the first.
  void find_or_insert(std::size_t k, bool may_wrap) {
    std::uint32_t const i = share_.places[k];
    Key const key = keys_[i];
    std::uint64_t const hash = hash_of(key);
    bool const moved = buckets_.old.place(hash) < buckets_.moved;
    BucketArray const& array = moved ? buckets_.grown : buckets_.old;
    std::uint32_t const limit = moved ? grown_limit_ : old_limit_;
    Bucket* room = nullptr;  // the first bucket with room
    bool absent = may_wrap;  // with may_wrap, a key that no bucket has is absent
    for (std::uint32_t at = array.place(hash), steps = 0; at < limit && steps < array.size; ++steps) {
      Bucket& b = array.bucket[at];
      std::uint32_t const found = b.place_of(key);
      if (found != 0) {
        share_.found[k] = b.id[lowest_bit(found)];
        return;
      }
      if (room == nullptr && (b.marks & kAllPlaces) != kAllPlaces) room = &b;
      bool const ends = (b.marks & tag_mask(hash)) == 0;
      absent |= ends;
      if (ends && room != nullptr) break;
      if (ends) b.marks |= tag_mask(hash);
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
  std::uint64_t near_limit_;  // see HashShare::near_limit()
  NewNumbers new_numbers_;

  // For the current and later keys: element k % kRing is of key k.
  Key key_[kRing];
  std::uint8_t tag_[kRing];
  Bucket* bucket_[kRing] = {};
  // Buckets that stand in for others: elsewhere_ is read in place of buckets that also have keys of other shares, and
  // nowhere_ is written if no key is to be inserted.
  Bucket elsewhere_[2] = {{{}, {}, ~kAllPlaces}}, nowhere_{};
};

}  // namespace gpups::kernels
