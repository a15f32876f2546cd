// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding of floats to numbers of 16 bits: the mean over all draws is the float. And the random bits for
// it, on the host for several columns at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/types.hpp"
#include "kernels/base/function.hpp"
#include "kernels/base/half.hpp"
#include "kernels/base/philox.hpp"
#ifndef __CUDACC__
#endif
#ifndef __CUDACC__
#ifdef __AVX2__
#include <immintrin.h>
#endif
#endif

namespace gpups::kernels {

// Returns the bits of the 16-bit numbers that floats with these bits are rounded to. random: uniform in [0, 2^16).
// Words: a uint32_t or, on the host, a vector of them. Has no branches.
template <class Words>
GPUPS_ANY_FN inline Words rounded_bits(BFloat16, Words bits, Words random) {
  auto const is_nan = (bits & ~kFloatSign) > kFloatInfinity;
  return (is_nan ? bits | kFloatQuiet : bits + random) >> 16;
}

// Returns a float in units of 2^-40, rounded down. REQUIRES: bits of a float in [0, 2^-14).
GPUPS_ANY_FN inline std::uint32_t small_units(std::uint32_t bits) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::bit_cast<float>(bits) * 0x1p40F));
}
#ifndef __CUDACC__
template <std::size_t kBytes>
struct SmallUnits {
  typedef float Floats __attribute__((vector_size(kBytes)));
  typedef std::int32_t Integers __attribute__((vector_size(kBytes)));
};
template <class Words>
inline Words small_units(Words bits) {
  using Floats = typename SmallUnits<sizeof(Words)>::Floats;
  using Integers = typename SmallUnits<sizeof(Words)>::Integers;
  return std::bit_cast<Words>(__builtin_convertvector(std::bit_cast<Floats>(bits) * 0x1p40F, Integers));
}
#endif

template <class Words>
GPUPS_ANY_FN inline Words rounded_bits(Half, Words bits, Words random) {
  constexpr std::uint32_t kTooLarge = 0x47800000;     // 65536
  constexpr std::uint32_t kLeastNormal = 0x38800000;  // 2^-14
  Words const magnitude = bits & ~kFloatSign;
  // Normal halves have 13 bits less than floats, and an exponent bias that is smaller by 112.
  Words const drawn = magnitude + (random >> 3);
  Words const normal = (drawn - (112U << 23)) >> 13;
  // Subnormal halves are multiples of 2^-24.
  auto const is_small = magnitude < kLeastNormal;
  Words const subnormal = (small_units(is_small ? magnitude : magnitude - magnitude) + random) >> 16;
  Words const finite = is_small ? subnormal : normal;
  Words const infinity = finite - finite + 0x7C00U;
  Words const special = magnitude > kFloatInfinity ? 0x7E00U | (magnitude >> 13 & 0x3FFU) : infinity;
  return (bits & kFloatSign) >> 16 | (drawn >= kTooLarge ? special : finite);
}

// Returns one of the two numbers of type T next to x, with probabilities that make their mean x. Probabilities are
// exact, except that for halves below 2^-14 in magnitude they are multiples of 2^-16. Numbers of type T, infinities and
// NaN do not change; finite floats that are too large become infinite. random: uniform in [0, 2^16).
template <class T>
GPUPS_ANY_FN inline T round_stochastically(float x, std::uint32_t random) {
  return {static_cast<std::uint16_t>(rounded_bits(T{}, std::bit_cast<std::uint32_t>(x), random))};
}

#ifndef __CUDACC__
// Computes philox() of several counters at once on the host, one in each 64-bit lane of a vector. Words are in the
// lower halves of lanes, which products read; upper halves may have any value.

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
#endif

// The random bits for rounding new values of a row: 16 for each column, a pure function of seed, key, step and column.
// Eight columns share four words of philox(): column j has half j % 2 of word j % 8 / 2 of block j / 8.

// What the random bits of a row depend on, except for the column.
struct RoundingDraw {
  PhiloxKey seed;
  std::uint64_t key;   // of the row
  std::uint32_t step;  // low half of the number of the step

  GPUPS_FN PhiloxCounter counter(std::size_t block) const {
    return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(block),
             step}};
  }
};

#ifdef __CUDACC__
// The bits of four columns.
struct FourBits {
  std::uint32_t of[4];
};
// Returns the bits of the columns j .. j + 3. REQUIRES: j % 4 == 0.
__device__ inline FourBits rounding_bits(RoundingDraw const& draw, std::size_t j) {
  Philox4 const r = philox(draw.seed, draw.counter(j / 8));
  std::uint32_t const first = j % 8 == 0 ? r.word[0] : r.word[2], second = j % 8 == 0 ? r.word[1] : r.word[3];
  return {{first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16}};
}
#else
// The bits of a whole row. A host thread computes them for many columns at a time.
class RoundingBits {
 public:
  explicit RoundingBits(RoundingDraw const& draw) : draw_(draw) {}

  // Returns the bits of the columns from j on, up to a multiple of 16. REQUIRES: j ascends from 0 in steps that divide
  // 16.
  std::uint16_t const* from(std::size_t j) {
    if (j % kColumns == 0) draw(j);
    return bits_ + j % kColumns;
  }

 private:
  static constexpr std::size_t kColumns = 64;

  // Computes the bits of the columns j .. j + kColumns - 1.
  [[gnu::noinline]] void draw(std::size_t j) {
    static_assert(std::endian::native == std::endian::little, "the lower half of a word comes first");
    for (std::size_t column = 0; column < kColumns; column += 8 * kPhiloxLanes) {
      PhiloxCounter const first = draw_.counter((j + column) / 8);
      PhiloxVector a = PhiloxVector{} + first.word[0], b = PhiloxVector{} + first.word[1];
      PhiloxVector c = philox_lane_numbers() + first.word[2], d = PhiloxVector{} + first.word[3];
      philox_lanes(draw_.seed, a, b, c, d);
      PhiloxVector const low = (a & 0xFFFFFFFF) | b << 32, high = (c & 0xFFFFFFFF) | d << 32;
      PhiloxVector const front = philox_pairs(low, high, 0), back = philox_pairs(low, high, kPhiloxLanes / 2);
      std::memcpy(bits_ + column, &front, sizeof front);
      std::memcpy(bits_ + column + 4 * kPhiloxLanes, &back, sizeof back);
    }
  }

  RoundingDraw draw_;
  alignas(64) std::uint16_t bits_[kColumns];
};
#endif

}  // namespace gpups::kernels
