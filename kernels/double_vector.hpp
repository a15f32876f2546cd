// SPDX-License-Identifier: Apache-2.0
// Vectors of doubles with a fused multiply-add that rounds downward. GPUPS_DOWNWARD is defined if the target has the
// instructions. GPUPS_ROUNDS_APART is defined if each instruction has its own rounding mode, so that other arithmetic
// still rounds to nearest.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__CUDACC__) && defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define GPUPS_DOWNWARD 1
#define GPUPS_ROUNDS_APART 1
#include <immintrin.h>

namespace gpups::kernels {

struct DoubleVector {
  static constexpr std::size_t kLanes = 8;
  static constexpr int kRegisters = 16;  // accumulators that are used at a time
  using Mask = __mmask8;
  static Mask first_lanes(std::size_t n) { return static_cast<Mask>(0xFFU >> (kLanes - n)); }

  // Does nothing: the rounding mode is part of each instruction.
  struct Downward {};

  __m512d value;
  static DoubleVector all(double x) { return {_mm512_set1_pd(x)}; }
  static DoubleVector load(float const* from) { return {_mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(from))}; }
  static DoubleVector load(float const* from, Mask mask) {
    return {_mm512_maskz_cvtps_pd(0xFF, _mm256_maskz_loadu_ps(mask, from))};
  }
  // this += c * x
  void add_product(DoubleVector c, DoubleVector x) {
    value = _mm512_fmadd_round_pd(c.value, x.value, value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }

  // Collects the bits in which pairs of vectors differ.
  struct Bits {
    __m512i value = _mm512_setzero_si512();
    // this |= a ^ b
    void note(DoubleVector a, DoubleVector b) {
      value = _mm512_ternarylogic_epi64(value, _mm512_castpd_si512(a.value), _mm512_castpd_si512(b.value), 0xF6);
    }
    // Returns whether any of the bits `of` differed.
    bool any(std::uint64_t of) const {
      return _mm512_test_epi64_mask(value, _mm512_set1_epi64(static_cast<long long>(of))) != 0;
    }
  };
  // Stores the differences of the bits of two vectors, as integers, for the lanes of `mask`.
  static void store_difference(DoubleVector a, DoubleVector b, std::int64_t* to, Mask mask) {
    _mm512_mask_storeu_epi64(to, mask, _mm512_sub_epi64(_mm512_castpd_si512(a.value), _mm512_castpd_si512(b.value)));
  }
  // Stores (low - b) * scale, followed by (high - b) * scale, as floats.
  static void store_scaled(DoubleVector low, DoubleVector high, DoubleVector b, DoubleVector scale, float* to) {
    __m256 const first = _mm512_maskz_cvtpd_ps(0xFF, _mm512_mul_pd(_mm512_sub_pd(low.value, b.value), scale.value));
    __m256 const second = _mm512_maskz_cvtpd_ps(0xFF, _mm512_mul_pd(_mm512_sub_pd(high.value, b.value), scale.value));
    _mm512_storeu_ps(to, _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1));
  }
};

}  // namespace gpups::kernels

#elif !defined(__CUDACC__) && defined(__AVX2__) && defined(__FMA__)
#define GPUPS_DOWNWARD 1
#include <immintrin.h>

namespace gpups::kernels {

struct DoubleVector {
  static constexpr std::size_t kLanes = 4;
  static constexpr int kRegisters = 8;
  using Mask = __m128i;
  static Mask first_lanes(std::size_t n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(n)), _mm_setr_epi32(0, 1, 2, 3));
  }

  // Makes the thread round downward until it is destroyed. REQUIRES: the arithmetic is in functions that are not
  // inlined.
  struct Downward {
    unsigned const before = _MM_GET_ROUNDING_MODE();
    Downward() { _MM_SET_ROUNDING_MODE(_MM_ROUND_DOWN); }
    ~Downward() { _MM_SET_ROUNDING_MODE(before); }
  };

  __m256d value;
  static DoubleVector all(double x) { return {_mm256_set1_pd(x)}; }
  static DoubleVector load(float const* from) { return {_mm256_cvtps_pd(_mm_loadu_ps(from))}; }
  static DoubleVector load(float const* from, Mask mask) { return {_mm256_cvtps_pd(_mm_maskload_ps(from, mask))}; }
  void add_product(DoubleVector c, DoubleVector x) { value = _mm256_fmadd_pd(c.value, x.value, value); }

  struct Bits {
    __m256d value = _mm256_setzero_pd();
    void note(DoubleVector a, DoubleVector b) { value = _mm256_or_pd(value, _mm256_xor_pd(a.value, b.value)); }
    bool any(std::uint64_t of) const {
      __m256i const mask = _mm256_set1_epi64x(static_cast<long long>(of));
      return _mm256_testz_si256(_mm256_castpd_si256(value), mask) == 0;
    }
  };
  static void store_difference(DoubleVector a, DoubleVector b, std::int64_t* to, Mask mask) {
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(to), _mm256_cvtepi32_epi64(mask),
                           _mm256_sub_epi64(_mm256_castpd_si256(a.value), _mm256_castpd_si256(b.value)));
  }
};

}  // namespace gpups::kernels
#endif
