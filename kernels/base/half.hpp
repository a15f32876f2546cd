// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits: IEEE binary16, and bfloat16, which is the upper half of a float. Floats are converted by rounding
// to nearest, ties to even. Infinities and NaN are kept; finite floats that are too large become infinite. Arithmetic
// is in float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/base/function.hpp"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

// IEEE binary16.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// Bit patterns of floats for the conversions below.
inline constexpr std::uint32_t kFloatSign = 0x80000000, kFloatInfinity = 0x7F800000, kFloatQuiet = 0x00400000;

GPUPS_ANY_FN inline float to_float(float x) { return x; }

GPUPS_ANY_FN inline float to_float(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

// Has no branches, so that loops of it become vector code.
GPUPS_ANY_FN inline float to_float(Half x) {
#ifdef __CUDA_ARCH__
  return __half2float(__half(__half_raw{x.bits}));
#else
  constexpr float kRebias = 0x1p112F;  // the exponent bias of floats is larger by 112
  std::uint32_t const sign = (std::uint32_t{x.bits} << 16) & kFloatSign;
  float const magnitude = std::bit_cast<float>((x.bits & 0x7FFFU) << 13) * kRebias;
  std::uint32_t const special = magnitude > 65536.0F ? kFloatInfinity | kFloatQuiet : kFloatInfinity;
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(magnitude);
  return std::bit_cast<float>(sign | (magnitude >= 65536.0F ? bits | special : bits));
#endif
}

// Returns the number of type T that is nearest to x.
template <class T>
GPUPS_ANY_FN inline T round_to(float x);

template <>
GPUPS_ANY_FN inline float round_to<float>(float x) {
  return x;
}

template <>
GPUPS_ANY_FN inline BFloat16 round_to<BFloat16>(float x) {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const nearest = bits + 0x7FFF + (bits >> 16 & 1U);
  bool const is_nan = (bits & ~kFloatSign) > kFloatInfinity;
  return {static_cast<std::uint16_t>((is_nan ? bits | kFloatQuiet : nearest) >> 16)};
}

template <>
GPUPS_ANY_FN inline Half round_to<Half>(float x) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(x))};
#else
  constexpr std::uint32_t kTooLarge = 0x47800000;     // 65536
  constexpr std::uint32_t kLeastNormal = 0x38800000;  // 2^-14
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const magnitude = bits & ~kFloatSign;
  // The last place of the float 0.5 is that of subnormal halves, so adding 0.5 rounds to a multiple of it.
  std::uint32_t const subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
  std::uint32_t const normal = (magnitude - (112U << 23) + 0xFFF + (magnitude >> 13 & 1U)) >> 13;
  std::uint32_t const special = magnitude > kFloatInfinity ? 0x7E00U | (magnitude >> 13 & 0x3FFU) : 0x7C00U;
  std::uint32_t const finite = magnitude < kLeastNormal ? subnormal : normal;
  return {static_cast<std::uint16_t>((bits & kFloatSign) >> 16 | (magnitude >= kTooLarge ? special : finite))};
#endif
}

// Reads kWide consecutive numbers as floats, with the conversion instruction of the target if it has one.
template <std::size_t kWide, class T>
GPUPS_ANY_FN inline void read_floats(T const* from, float (&to)[kWide]) {
  for (std::size_t k = 0; k < kWide; ++k) to[k] = to_float(from[k]);
}

#if defined(__F16C__) && !defined(__CUDACC__)
template <std::size_t kWide>
inline void read_floats(Half const* from, float (&to)[kWide]) {
  std::size_t k = 0;
#ifdef __AVX512F__
  for (; k + 16 <= kWide; k += 16) {
    _mm512_storeu_ps(to + k,
                     _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + k))));
  }
#endif
  for (; k + 8 <= kWide; k += 8) {
    _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from + k))));
  }
  for (; k < kWide; ++k) to[k] = to_float(from[k]);
}
#endif

}  // namespace gpups::kernels
