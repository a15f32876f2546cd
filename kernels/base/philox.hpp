// SPDX-License-Identifier: Apache-2.0
// Random numbers as a pure function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). The same bits on host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/function.hpp"
#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

struct PhiloxKey {
  std::uint32_t word[2];
};
struct PhiloxCounter {
  std::uint32_t word[4];
};
struct Philox4 {
  std::uint32_t word[4];
};

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
}

// Returns four random words for one counter.
constexpr Philox4 philox(PhiloxKey key, PhiloxCounter counter) {
  std::uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const left = std::uint64_t{0xD2511F53U} * a;
    std::uint64_t const right = std::uint64_t{0xCD9E8D57U} * c;
    a = static_cast<std::uint32_t>(right >> 32) ^ b ^ k0;
    b = static_cast<std::uint32_t>(right);
    c = static_cast<std::uint32_t>(left >> 32) ^ d ^ k1;
    d = static_cast<std::uint32_t>(left);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{a, b, c, d}};
}

// Returns a multiple of 2^-24 in [0, 1).
constexpr float uniform01(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// Computes several blocks of philox() at once, with the same key, in a form that becomes vector code on the host.

// word[.][b] are the four words of block b: its counter before run(), its random words after it.
template <std::size_t kBlocks>
struct PhiloxBlocks {
  std::uint32_t word[4][kBlocks];

  GPUPS_FN void run(PhiloxKey key) {
    std::size_t first = 0;
#if defined(__AVX512F__) && !defined(__CUDACC__)
    for (; first + 8 <= kBlocks; first += 8) run_eight(key, first);
#endif
    std::uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
      for (std::size_t b = first; b < kBlocks; ++b) {
        std::uint64_t const left = std::uint64_t{0xD2511F53U} * word[0][b];
        std::uint64_t const right = std::uint64_t{0xCD9E8D57U} * word[2][b];
        word[0][b] = static_cast<std::uint32_t>(right >> 32) ^ word[1][b] ^ k0;
        word[1][b] = static_cast<std::uint32_t>(right);
        word[2][b] = static_cast<std::uint32_t>(left >> 32) ^ word[3][b] ^ k1;
        word[3][b] = static_cast<std::uint32_t>(left);
      }
    }
  }

#if defined(__AVX512F__) && !defined(__CUDACC__)
 private:
  // Each word is in a 64-bit lane, whose upper half may have any value: products read lower halves only.
  [[gnu::always_inline]] void run_eight(PhiloxKey key, std::size_t first) {
    constexpr __mmask8 kAll = 0xFF;
    constexpr int kXorOfThree = 0x96;
    __m512i w[4];
    for (std::size_t j = 0; j < 4; ++j) {
      w[j] = _mm512_maskz_cvtepu32_epi64(kAll, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(word[j] + first)));
    }
    __m512i const left_factor = _mm512_set1_epi64(0xD2511F53U), right_factor = _mm512_set1_epi64(0xCD9E8D57U);
    std::uint32_t k0 = key.word[0], k1 = key.word[1];
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
      __m512i const left = _mm512_maskz_mul_epu32(kAll, left_factor, w[0]);
      __m512i const right = _mm512_maskz_mul_epu32(kAll, right_factor, w[2]);
      w[0] =
          _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, right, 32), w[1], _mm512_set1_epi64(k0), kXorOfThree);
      w[2] =
          _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, left, 32), w[3], _mm512_set1_epi64(k1), kXorOfThree);
      w[1] = right;
      w[3] = left;
    }
    for (std::size_t j = 0; j < 4; ++j) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(word[j] + first), _mm512_maskz_cvtepi64_epi32(kAll, w[j]));
    }
  }
#endif
};

}  // namespace gpups::kernels
