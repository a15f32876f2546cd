// SPDX-License-Identifier: Apache-2.0
// Searches an index for keys on the host, in the order of the keys. The search of a key has three stages, and the work
// that the caller does between them overlaps with the loading of buckets. First, keys are hashed in vectors and their
// first buckets are prefetched into the second-level cache, which can have more lines in flight than the first-level
// cache. Some time later, these buckets are searched without a branch. Keys that may be in a later bucket wait: one key
// in ten for its second bucket, some for several buckets. Each time that new keys are searched in their first buckets,
// all waiting keys are searched in one more bucket. So no branch is mispredicted, and memory is always busy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/array.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/index/bucket_host.hpp"

namespace gpups::kernels {

// The search for the keys of one view.
class KeySearch {
 public:
  // The most keys for which look() has been called, but finish() has not.
  static constexpr std::size_t kPending = 2048;

  // Starts a search. The number of key k, or kNoRow, will be written to ids[k & mask].
  void begin(Buckets const& buckets, View<Key const> keys, std::uint32_t* ids, std::size_t mask) {
    buckets_ = buckets;
    keys_ = keys;
    ids_ = ids;
    mask_ = mask;
    placed_ = looked_ = waiting_ = 0;
  }
  // Prefetches the first buckets of the keys before `end`. REQUIRES: there are keys; prefetch() is fewer than kRing
  // keys ahead of look().
  [[gnu::always_inline]] void prefetch(std::size_t end) {
    for (end = std::min(end, keys_.size() + kNear); placed_ < end;) {
      Bucket const* const* const bucket = bucket_ + placed_ % kRing;
      place();
      for (std::size_t k = 0; k < kGroup; ++k) __builtin_prefetch(bucket[k], 0, kSecondLevel);
    }
  }
  // Searches the keys before `end` in their first buckets. kClose: first prefetches the buckets from the second-level
  // into the first-level cache, which does not pay if prefetch() was called long ago. REQUIRES: afterwards at most
  // kPending keys are not finished.
  template <bool kClose>
  void look(std::size_t end) {
    if (kClose && looked_ == 0) prefetch(kFar);
    for (end = std::min(end, keys_.size()); looked_ < end; looked_ = std::min(looked_ + kPiece, end)) {
      look_again();
      look_at_first<kClose>(std::min(looked_ + kPiece, end));
    }
  }
  // Completes the search for the keys before `end`: writes their numbers. REQUIRES: look() has been called for them.
  void finish(std::size_t end) {
    std::uint32_t const most = std::max(buckets_.old.size, buckets_.grown.size);
    for (std::uint32_t steps = 0; waiting_ != 0 && list_[0].key < end; ++steps) {
      if (steps == most) waiting_ = 0;  // they have been searched in all buckets
      look_again();
    }
  }

 private:
  static constexpr std::size_t kGroup = 16, kPiece = 64, kFar = 48, kNear = 8, kKeysAhead = 256, kRing = 512;
  static_assert(kRing % kGroup == 0);
  // A key that may be in `bucket`, which is being prefetched.
  struct Waiting {
    Bucket const* bucket;
    std::uint32_t key;
    std::uint32_t tag;  // the bit of marks that is set if such a key has passed a bucket
  };

  // Computes the first buckets of the next kGroup keys; past the last key, the last key is repeated.
  [[gnu::always_inline]] void place() {
    std::size_t const n = keys_.size(), first = placed_;
    placed_ += kGroup;
    // The hardware prefetcher stops at the end of a page, which has 512 keys.
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

  // Searches the keys looked_ .. end - 1, at most kPiece, in their first buckets.
  template <bool kClose>
  void look_at_first(std::size_t end) {
    // Copies: the compiler knows that no store below changes them.
    Key const* const keys = keys_.data();
    std::uint32_t* const ids = ids_;
    std::size_t const mask = mask_;
    std::uint32_t elsewhere[kPiece + 1];  // keys that may be in a later bucket
    std::size_t count = 0;
    for (std::size_t group = looked_; group < end; group += kGroup) {
      if (kClose) {
        while (placed_ < group + kGroup + kFar) place();
      } else {
        prefetch(group + kGroup + kFar);
      }
      for (std::size_t k = group; k < std::min(group + kGroup, end); ++k) {
        if (kClose) {  // one at a time: the first-level cache has few lines in flight
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
    prefetch_next(waiting);
  }
  // Searches each waiting key in the bucket that it waits for.
  void look_again() {
    std::size_t waiting = 0;
    for (std::size_t w = 0; w < waiting_; ++w) {
      Waiting const one = list_[w];
      std::uint32_t const place = one.bucket->place_of(keys_[one.key]), none = is_none(place);
      ids_[one.key & mask_] = number_at(*one.bucket, place) | (0U - none);
      waiting = wait_for_next(one, none, waiting);
    }
    waiting_ = 0;
    prefetch_next(waiting);
  }

  // Appends a key to the list of waiting keys, which has `waiting` elements, if `absent` is 1 and the key may be in a
  // later bucket. Returns the new length of the list.
  [[gnu::always_inline]] std::size_t wait_for_next(Waiting one, std::uint32_t absent, std::size_t waiting) {
    list_[waiting] = {next(one.bucket), one.key, one.tag};
    return waiting + (absent & one.bucket->marks >> one.tag);
  }
  void prefetch_next(std::size_t waiting) {
    for (std::size_t w = waiting_; w < waiting; ++w) __builtin_prefetch(list_[w].bucket, 0, kSecondLevel);
    waiting_ = waiting;
  }
  Bucket const* next(Bucket const* bucket) const {
    // The array is found by the address of the bucket, because one array may end where the other begins.
    auto const from_grown =
        reinterpret_cast<std::uintptr_t>(bucket) - reinterpret_cast<std::uintptr_t>(buckets_.grown.bucket);
    BucketArray const& array = from_grown < buckets_.grown.size * sizeof(Bucket) ? buckets_.grown : buckets_.old;
    return bucket + 1 == array.bucket + array.size ? array.bucket : bucket + 1;
  }

  Buckets buckets_;
  View<Key const> keys_;
  std::uint32_t* ids_;
  std::size_t mask_;
  std::size_t placed_ = 0, looked_ = 0;  // numbers of keys
  // Element k % kRing is of key k: its first bucket, and its tag (see Waiting).
  alignas(64) Bucket const* bucket_[kRing];
  std::uint8_t tag_[kRing];
  std::size_t waiting_ = 0;
  Waiting list_[kPending + 1];  // of waiting_ keys, in the order of keys
};

}  // namespace gpups::kernels
