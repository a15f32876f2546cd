// SPDX-License-Identifier: Apache-2.0
// The search on the host, for keys in their order. Each goes through three stages, and what the caller does between
// them overlaps with the reading of buckets. Keys are hashed by vectors, and their first buckets asked for, in the
// second-level cache, which can wait for more lines at once than the first. Some time later these are looked at without
// a branch. Keys that may be in a later bucket wait for it, one key in ten for the second one, some for several: all
// that wait look at one more each time that others look at their first. So no branch is guessed wrong, and the memory
// always has work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/array.hpp"
#include "kernels/bucket_host.hpp"
#include "kernels/nontemporal.hpp"

namespace gpups::kernels {

class KeySearch {
 public:
  // Keys that may be looked at and not finished, at most.
  static constexpr std::size_t kPending = 2048;

  // The number of key k, or kNoRow, is written to ids[k & mask].
  void begin(Buckets const& buckets, View<Key const> keys, std::uint32_t* ids, std::size_t mask) {
    buckets_ = buckets;
    keys_ = keys;
    ids_ = ids;
    mask_ = mask;
    placed_ = looked_ = waiting_ = 0;
  }
  // Asks for the first buckets of the keys before `end`. REQUIRES: there are keys; fewer than kRing are asked for and
  // not looked at.
  [[gnu::always_inline]] void ask(std::size_t end) {
    for (end = std::min(end, keys_.size() + kNear); placed_ < end;) {
      Bucket const* const* const bucket = bucket_ + placed_ % kRing;
      place();
      for (std::size_t k = 0; k < kGroup; ++k) __builtin_prefetch(bucket[k], 0, kSecondLevel);
    }
  }
  // Looks at the first buckets of the keys before `end`. kClose: they are brought closer before, from the second-level
  // cache; not worth it where they were asked for long ago. REQUIRES: at most kPending keys are not finished then.
  template <bool kClose>
  void look(std::size_t end) {
    if (kClose && looked_ == 0) ask(kFar);
    for (end = std::min(end, keys_.size()); looked_ < end; looked_ = std::min(looked_ + kPiece, end)) {
      look_again();
      look_at_first<kClose>(std::min(looked_ + kPiece, end));
    }
  }
  // Makes sure that the numbers of the keys before `end` are there. REQUIRES: these were looked for.
  void finish(std::size_t end) {
    std::uint32_t const most = std::max(buckets_.old.size, buckets_.grown.size);
    for (std::uint32_t steps = 0; waiting_ != 0 && list_[0].key < end; ++steps) {
      if (steps == most) waiting_ = 0;  // they have been everywhere
      look_again();
    }
  }

 private:
  static constexpr std::size_t kGroup = 16, kPiece = 64, kFar = 48, kNear = 8, kKeysAhead = 256, kRing = 512;
  static_assert(kRing % kGroup == 0);
  // A key that may be in the bucket, which is on its way.
  struct Waiting {
    Bucket const* bucket;
    std::uint32_t key;
    std::uint32_t tag;  // the bit of a bucket's marks that says whether such a key went on
  };

  // Hashes the next kGroup keys; past the last one, the last ones again.
  [[gnu::always_inline]] void place() {
    std::size_t const n = keys_.size(), first = placed_;
    placed_ += kGroup;
    // The processor reads ahead to the end of a page, which is 512 keys.
    prefetch_row<PrefetchTarget::kToL2>(keys_.data() + std::min(first + kKeysAhead, n), kGroup * sizeof(Key));
    if (first + kGroup <= n) return place(keys_.data() + first, first % kRing);
    Key last[kGroup];
    for (std::size_t k = 0; k < kGroup; ++k) last[k] = keys_[std::min(first + k, n - 1)];
    place(last, first % kRing);
  }
  [[gnu::always_inline]] void place(Key const* keys, std::size_t at) {
    Buckets const buckets = buckets_;
    for (std::size_t k = 0; k < kGroup; k += kKeysOfVector) {
      KeyWords const hash = hashes_of(keys + k), address = first_buckets(buckets, hash);
      std::memcpy(bucket_ + at + k, &address, sizeof address);
      store_tags(hash, tag_ + at + k);
    }
  }

  // Looks at the first buckets of the keys looked_ .. end - 1, at most kPiece.
  template <bool kClose>
  void look_at_first(std::size_t end) {
    // Copies, which no store below can change.
    Key const* const keys = keys_.data();
    std::uint32_t* const ids = ids_;
    std::size_t const mask = mask_;
    std::uint32_t elsewhere[kPiece + 1];  // keys that may be
    std::size_t count = 0;
    for (std::size_t group = looked_; group < end; group += kGroup) {
      if (kClose) {
        while (placed_ < group + kGroup + kFar) place();
      } else {
        ask(group + kGroup + kFar);
      }
      for (std::size_t k = group; k < std::min(group + kGroup, end); ++k) {
        if (kClose) {  // one at a time: the first level waits for few lines at once
          __builtin_prefetch(bucket_[(k + kFar) % kRing], 0, kSecondLevel);
          __builtin_prefetch(bucket_[(k + kNear) % kRing]);
        }
        Bucket const& bucket = *bucket_[k % kRing];
        std::uint32_t const place = bucket.place_of(keys[k]), none = is_none(place);
        ids[k & mask] = number_at(bucket, place) | (0U - none);
        elsewhere[count] = static_cast<std::uint32_t>(k);
        count += none & bucket.marks >> tag_[k % kRing];
      }
    }
    std::size_t waiting = waiting_;
    for (std::size_t a = 0; a < count; ++a) {
      std::uint32_t const k = elsewhere[a];
      list_[waiting++] = {next(bucket_[k % kRing]), k, tag_[k % kRing]};
    }
    ask_for_next(waiting);
  }
  // All keys that wait look at the bucket that they wait for.
  void look_again() {
    std::size_t waiting = 0;
    for (std::size_t w = 0; w < waiting_; ++w) {
      Waiting const one = list_[w];
      std::uint32_t const place = one.bucket->place_of(keys_[one.key]), none = is_none(place);
      ids_[one.key & mask_] = number_at(*one.bucket, place) | (0U - none);
      waiting = wait_for_next(one, none, waiting);
    }
    waiting_ = 0;
    ask_for_next(waiting);
  }

  // Lets a key wait behind `waiting` others if it is `absent` and may be in a later bucket. Returns how many wait.
  [[gnu::always_inline]] std::size_t wait_for_next(Waiting one, std::uint32_t absent, std::size_t waiting) {
    list_[waiting] = {next(one.bucket), one.key, one.tag};
    return waiting + (absent & one.bucket->marks >> one.tag);
  }
  void ask_for_next(std::size_t waiting) {
    for (std::size_t w = waiting_; w < waiting; ++w) __builtin_prefetch(list_[w].bucket, 0, kSecondLevel);
    waiting_ = waiting;
  }
  Bucket const* next(Bucket const* bucket) const {
    // By the array that it is in: one may end where the other begins.
    auto const from_grown =
        reinterpret_cast<std::uintptr_t>(bucket) - reinterpret_cast<std::uintptr_t>(buckets_.grown.bucket);
    BucketArray const& array = from_grown < buckets_.grown.size * sizeof(Bucket) ? buckets_.grown : buckets_.old;
    return bucket + 1 == array.bucket + array.size ? array.bucket : bucket + 1;
  }

  Buckets buckets_;
  View<Key const> keys_;
  std::uint32_t* ids_;
  std::size_t mask_;
  std::size_t placed_ = 0, looked_ = 0;  // keys
  // Of key k, at k % kRing: its first bucket, and its tag, see Waiting.
  alignas(64) Bucket const* bucket_[kRing];
  std::uint8_t tag_[kRing];
  std::size_t waiting_ = 0;
  Waiting list_[kPending + 1];  // of waiting_ keys, in their order
};

}  // namespace gpups::kernels
