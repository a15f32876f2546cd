// SPDX-License-Identifier: Apache-2.0
// The bucket of a key index: five keys, their numbers and a count, in one cache line. Entries are never taken out
// (keys are forgotten by filling other buckets with the rest), so the first `count` places are full; a count above five
// says that later keys went on to the next bucket.
#pragma once

#include <cstdint>

#include "gpups/types.hpp"
#include "kernels/atomic.hpp"
#include "kernels/hash.hpp"
#include "kernels/row_storage.hpp"
#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

inline constexpr std::uint32_t kBucketKeys = 5;

struct alignas(64) Bucket {
  std::uint64_t key[kBucketKeys];
  std::uint32_t id[kBucketKeys];
  std::uint32_t count;

  GPUPS_FN std::uint32_t full() const { return count < kBucketKeys ? count : kBucketKeys; }
};
static_assert(sizeof(Bucket) == 64);

// What kernels may do with the buckets of an index. Their number is a power of two.
struct Buckets {
  Bucket* bucket;
  std::uint64_t mask;

  // Where the search for a key starts.
  GPUPS_FN std::uint64_t place(Key key) const { return hash_of(key) & mask; }

  GPUPS_FN std::uint32_t find(Key key, std::uint64_t at) const {
    for (;; at = (at + 1) & mask) {
      Bucket const& b = bucket[at];
      std::uint32_t const count = b.count;
      std::uint32_t const full = b.full();
#if defined(__AVX512F__) && !defined(__CUDACC__)
      unsigned const equal = _mm512_cmpeq_epi64_mask(_mm512_load_si512(&b), _mm512_set1_epi64(number(key)));
      unsigned const hit = equal & ((1U << full) - 1);
      if (hit != 0) return b.id[__builtin_ctz(hit)];
#else
      for (std::uint32_t k = 0; k < full; ++k) {
        if (b.key[k] == number(key)) return b.id[k];
      }
#endif
      if (count <= kBucketKeys) return kNoRow;
    }
  }

  // REQUIRES: the key is not in yet; nobody searches meanwhile. Many may insert at once.
  GPUPS_FN void insert(Key key, std::uint32_t id) const {
    for (std::uint64_t at = place(key);; at = (at + 1) & mask) {
      Bucket& b = bucket[at];
      std::uint32_t const k = atomic_add(&b.count, 1);
      if (k >= kBucketKeys) continue;
      b.key[k] = number(key);
      b.id[k] = id;
      return;
    }
  }
};

}  // namespace gpups::kernels
