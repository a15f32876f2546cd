// SPDX-License-Identifier: Apache-2.0
// Vectors of doubles with a fused multiply-add that rounds downward. GPUPS_DOWNWARD is defined if the target has the
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__CUDACC__) && defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define GPUPS_DOWNWARD 1
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
  // Stores the differences of two vectors.
  static void store_difference(DoubleVector a, DoubleVector b, double* to) {
    _mm512_storeu_pd(to, _mm512_sub_pd(a.value, b.value));
  }
};

}  // namespace gpups::kernels

#elif !defined(__CUDACC__) && (defined(__FMA__) || defined(__aarch64__))
#define GPUPS_DOWNWARD 1
#include "kernels/base/highway.hpp"
#ifdef __x86_64__
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace gpups::kernels {

struct DoubleVector {
  using D = hn::CappedTag<double, 4>;
  using Floats = hn::Rebind<float, D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());
  static constexpr int kRegisters = 32 / static_cast<int>(kLanes);
  struct Mask {
    hn::Mask<D> of;
    hn::Mask<Floats> of_floats;
  };
  static Mask first_lanes(std::size_t n) { return {hn::FirstN(D(), n), hn::FirstN(Floats(), n)}; }

  // Makes the thread round downward until it is destroyed. REQUIRES: the arithmetic is in functions that are not
  // inlined.
#ifdef __x86_64__  // only the mode of vector registers
  struct Downward {
    unsigned const before = _MM_GET_ROUNDING_MODE();
    Downward() { _MM_SET_ROUNDING_MODE(_MM_ROUND_DOWN); }
    ~Downward() { _MM_SET_ROUNDING_MODE(before); }
  };
#else
  struct Downward {
    int const before = std::fegetround();
    Downward() { std::fesetround(FE_DOWNWARD); }
    ~Downward() { std::fesetround(before); }
  };
#endif

  hn::Vec<D> value;
  static DoubleVector all(double x) { return {hn::Set(D(), x)}; }
  static DoubleVector load(float const* from) { return {hn::PromoteTo(D(), hn::LoadU(Floats(), from))}; }
  static DoubleVector load(float const* from, Mask mask) {
    return {hn::PromoteTo(D(), hn::MaskedLoad(mask.of_floats, Floats(), from))};
  }
  void add_product(DoubleVector c, DoubleVector x) { value = hn::MulAdd(c.value, x.value, value); }

  struct Bits {
    hn::Vec<D> value = hn::Zero(D());
    void note(DoubleVector a, DoubleVector b) { value = hn::Or(value, hn::Xor(a.value, b.value)); }
    bool any(std::uint64_t of) const {
      hn::RebindToUnsigned<D> const d;
      return !hn::AllTrue(d, hn::Eq(hn::And(hn::BitCast(d, value), hn::Set(d, of)), hn::Zero(d)));
    }
  };
  static void store_difference(DoubleVector a, DoubleVector b, std::int64_t* to, Mask mask) {
    hn::RebindToSigned<D> const d;
    hn::BlendedStore(hn::Sub(hn::BitCast(d, a.value), hn::BitCast(d, b.value)), hn::RebindMask(d, mask.of), d, to);
  }
  static void store_difference(DoubleVector a, DoubleVector b, double* to) {
    hn::StoreU(hn::Sub(a.value, b.value), D(), to);
  }
};

}  // namespace gpups::kernels
#endif
