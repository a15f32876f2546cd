// SPDX-License-Identifier: Apache-2.0
// Computes philox() of several counters at once on the host, one in each 64-bit lane of a vector. Words are in the
// lower halves of lanes, which products read; upper halves may have any value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/philox.hpp"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace gpups::kernels {

#ifdef __AVX512F__
inline constexpr std::size_t kPhiloxLanes = 8;
#else
inline constexpr std::size_t kPhiloxLanes = 4;
#endif
using PhiloxVector = std::uint64_t __attribute__((vector_size(kPhiloxLanes * sizeof(std::uint64_t))));

// Returns a vector whose lanes are their numbers.
inline PhiloxVector philox_lane_numbers() {
  PhiloxVector numbers;
  for (std::size_t lane = 0; lane < kPhiloxLanes; ++lane) numbers[lane] = lane;
  return numbers;
}

// Returns lanes of a and of b alternately, from lane `first` on.
inline PhiloxVector philox_pairs(PhiloxVector a, PhiloxVector b, std::size_t first) {
  PhiloxVector pairs;
#ifdef __clang__  // clang has no shuffle whose mask is a variable
  for (std::size_t l = 0; l < kPhiloxLanes; ++l) pairs[l] = l % 2 == 0 ? a[first + l / 2] : b[first + l / 2];
#else
  for (std::size_t l = 0; l < kPhiloxLanes; ++l) pairs[l] = first + l / 2 + l % 2 * kPhiloxLanes;
  pairs = __builtin_shuffle(a, b, pairs);
#endif
  return pairs;
}

// Returns the product of each word and a factor, in 64 bits.
inline PhiloxVector philox_product(PhiloxVector word, std::uint32_t factor) {
#if defined(__AVX512F__)
  auto const factors = _mm512_set1_epi64(static_cast<long long>(factor));
  return reinterpret_cast<PhiloxVector>(_mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(word), factors));
#elif defined(__AVX2__)
  auto const factors = _mm256_set1_epi64x(static_cast<long long>(factor));
  return reinterpret_cast<PhiloxVector>(_mm256_mul_epu32(reinterpret_cast<__m256i>(word), factors));
#else
  return (word & 0xFFFFFFFF) * factor;
#endif
}

// Replaces the words a, b, c, d of counters by their random words.
inline void philox_lanes(PhiloxKey key, PhiloxVector& a, PhiloxVector& b, PhiloxVector& c, PhiloxVector& d) {
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
    PhiloxVector const left = philox_product(a, 0xD2511F53U), right = philox_product(c, 0xCD9E8D57U);
    a = right >> 32 ^ b ^ std::uint64_t{k0};
    b = right;
    c = left >> 32 ^ d ^ std::uint64_t{k1};
    d = left;
  }
}

}  // namespace gpups::kernels
