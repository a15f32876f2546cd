// SPDX-License-Identifier: Apache-2.0
// The buckets of a key index. A bucket is one cache line with five keys, their row numbers and a word of marks.
//
// Keys are spread over an array of buckets in the order of the low half of their hashes. So an array may have any size,
// and growth moves keys in order, from the beginning of one array to the beginning of a larger one. If the bucket of a
// key is full, the key goes into a later bucket, and its tag, one of 27, is marked in each bucket that it passes. A
// search ends at a bucket in which the tag of the searched key is not marked: for nearly every absent key, that is the
// first bucket.
#pragma once

#include <cstdint>

#include "gpups/types.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/rows/row_storage.hpp"
#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

inline constexpr std::uint32_t kBucketKeys = 5;
inline constexpr std::uint32_t kAllPlaces = (1U << kBucketKeys) - 1;

// Returns the tag of a key with this hash: the number of the bit of `marks` that is set in each bucket that such a key
// has passed.
// The tag depends on bits of the hash that select neither the bucket nor, with fewer than 2^16 ranks, the home. Hashes:
// one hash, or a vector of them.
template <class Hashes>
GPUPS_ANY_FN constexpr Hashes tag_bit(Hashes hash) {
  return kBucketKeys + ((hash >> 32 & 0xFFFF) * (32 - kBucketKeys) >> 16);
}
// Returns the word whose only bit is the tag of the key.
GPUPS_ANY_FN constexpr std::uint32_t tag_mask(std::uint64_t hash) { return 1U << tag_bit(hash); }

// Returns the number, < size, of the bucket where the search for a key with this hash starts. Non-decreasing in the low
// half of the hash.
template <class Hashes>
GPUPS_ANY_FN constexpr Hashes first_place(Hashes hash, std::uint64_t size) {
  return (hash & 0xFFFFFFFF) * size >> 32;
}

// REQUIRES: bits != 0.
GPUPS_FN inline unsigned lowest_bit(std::uint32_t bits) {
#ifdef __CUDACC__
  return static_cast<unsigned>(__ffs(static_cast<int>(bits))) - 1;
#else
  return static_cast<unsigned>(__builtin_ctz(bits));
#endif
}

struct alignas(64) Bucket {
  std::uint64_t key[kBucketKeys];
  std::uint32_t id[kBucketKeys];
  std::uint32_t marks;  // bits 0 to 4: the places that are taken; the other bits: see tag_mask()

  // Returns a word whose only bit is the place of the key, or 0 if the bucket does not have the key. Has no branch.
  GPUPS_FN std::uint32_t place_of(Key of) const {
#if defined(__AVX512F__) && !defined(__CUDACC__)
    auto const all = static_cast<std::int64_t>(number(of));
    return _mm512_cmpeq_epi64_mask(_mm512_load_si512(this), _mm512_set1_epi64(all)) & marks & kAllPlaces;
#else
    std::uint32_t equal = 0;
    for (std::uint32_t k = 0; k < kBucketKeys; ++k) equal |= (key[k] == number(of) ? 1U : 0U) << k;
    return equal & marks;
#endif
  }
};
static_assert(sizeof(Bucket) == 64);

// An array of buckets, as kernels use it. Many threads may insert at once, or erase at once, but not while others
// search.
struct BucketArray {
  Bucket* bucket;
  std::uint32_t size;

  GPUPS_FN std::uint32_t place(std::uint64_t hash) const { return static_cast<std::uint32_t>(first_place(hash, size)); }
  GPUPS_FN std::uint32_t next(std::uint32_t at) const { return at + 1 == size ? 0 : at + 1; }

  // Inserts a key with its number. REQUIRES: the array does not have the key, and has fewer than 5 * size keys.
  GPUPS_FN void insert(Key key, std::uint64_t hash, std::uint32_t id) const {
    for (std::uint32_t at = place(hash);; at = next(at)) {
      Bucket& b = bucket[at];
      std::uint32_t marks = atomic_load(&b.marks);
      while ((marks & kAllPlaces) != kAllPlaces) {
        std::uint32_t const taken = (marks + 1) & ~marks & kAllPlaces;  // the lowest free place
        std::uint32_t const seen = atomic_exchange_if(&b.marks, marks, marks | taken);
        if (seen == marks) {
          unsigned const k = lowest_bit(taken);
          b.key[k] = number(key);
          b.id[k] = id;
          return;
        }
        marks = seen;
      }
      if ((marks & tag_mask(hash)) == 0) atomic_or(&b.marks, tag_mask(hash));
    }
  }

  // Erases a key if its number is `id`. Returns whether it was there. Marked tags stay.
  GPUPS_FN bool erase(Key key, std::uint64_t hash, std::uint32_t id) const {
    std::uint32_t at = place(hash);
    for (std::uint32_t steps = 0; steps < size; ++steps, at = next(at)) {
      Bucket& b = bucket[at];
      std::uint32_t const marks = atomic_load(&b.marks);
      for (std::uint32_t k = 0; k < kBucketKeys; ++k) {
        bool const here = (marks >> k & 1) != 0 && b.key[k] == number(key) && b.id[k] == id;
        if (here) return (atomic_and(&b.marks, ~(1U << k)) >> k & 1) != 0;
      }
      if ((marks & tag_mask(hash)) == 0) return false;
    }
    return false;
  }
};

// The buckets of an index, as kernels use them: an array and, while the index grows, a larger array to which keys move
// in the order of their first buckets. Keys whose first bucket in `old` is below `moved` are in `grown`.
struct Buckets {
  BucketArray old, grown;
  std::uint32_t moved;

  // Returns the array for keys with this hash.
  GPUPS_FN BucketArray of(std::uint64_t hash) const {
    bool const there = old.place(hash) < moved;
    return {there ? grown.bucket : old.bucket, there ? grown.size : old.size};
  }
  // Returns the bucket where the search for a key with this hash starts.
  GPUPS_FN Bucket* first(std::uint64_t hash) const {
    Bucket* const here = old.bucket + old.place(hash);
    Bucket* const there = grown.bucket + grown.place(hash);
    return old.place(hash) < moved ? there : here;
  }
  // Returns the number of a key with this hash, or kNoRow. One thread does the whole search.
  GPUPS_FN std::uint32_t find(Key key, std::uint64_t hash) const {
    BucketArray const array = of(hash);
    std::uint32_t at = array.place(hash);
    for (std::uint32_t steps = 0; steps < array.size; ++steps, at = array.next(at)) {
      Bucket const& b = array.bucket[at];
      std::uint32_t const place = b.place_of(key);
      if (place != 0) return b.id[lowest_bit(place)];
      if ((b.marks & tag_mask(hash)) == 0) break;
    }
    return kNoRow;
  }
};

}  // namespace gpups::kernels
