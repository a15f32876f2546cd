// SPDX-License-Identifier: Apache-2.0
// The most used wire format, kInt8 rounded to nearest, with vectors of 16 floats: the sums of a row stay in registers
// between the search for its largest magnitude and the encoding. Gives the same bits as Code<Format::kInt8>.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && !defined(__CUDACC__)
#define GPUPS_QUANTIZE_INT8 1
#include <immintrin.h>

#include "kernels/wire/code.hpp"

namespace gpups::kernels {

// The longest row that fits in registers.
inline constexpr std::size_t kInt8ColumnsMost = 128;

// Intrinsics here and below have zero masks (maskz), because g++ warns about the undefined lanes of the others.
inline std::uint32_t largest_word(__m512i words) {
  __m256i most =
      _mm256_max_epu32(_mm512_maskz_extracti64x4_epi64(0xF, words, 0), _mm512_maskz_extracti64x4_epi64(0xF, words, 1));
  __m128i few = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  few = _mm_max_epu32(few, _mm_shuffle_epi32(few, 0b01'00'11'10));
  few = _mm_max_epu32(few, _mm_shuffle_epi32(few, 0b10'11'00'01));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(few));
}

// Quantizes a row of dim columns, 16 * kVectors or up to 15 fewer, and returns its scale. `residual` may be null. The
// memory `ahead` floats behind the row is prefetched, since it is needed soon: prefetches between the loads make this a
// fifth faster.
template <int kVectors>
inline float quantize_int8(float const* values, float* residual, std::uint8_t* codes, std::size_t dim,
                           std::size_t ahead) {
  constexpr int kLast = kVectors - 1;
  constexpr __mmask16 kAll = 0xFFFF;
  auto const columns = static_cast<unsigned>(dim - 16 * kLast);
  auto const last = static_cast<__mmask16>(kAll >> (16 - columns));
  auto const last_codes = static_cast<__mmask16>(kAll >> (16 - (columns + 3) / 4 * 4));
  __m512 sum[kVectors];
  __m512i const magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i most = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    __mmask16 const mask = v == kLast ? last : kAll;
    sum[v] = _mm512_maskz_loadu_ps(mask, values + 16 * v);
    _mm_prefetch(values + 16 * v + ahead, _MM_HINT_T0);
    if (residual != nullptr) _mm_prefetch(residual + 16 * v + ahead, _MM_HINT_T0);
    if (residual != nullptr) sum[v] = _mm512_add_ps(sum[v], _mm512_maskz_loadu_ps(mask, residual + 16 * v));
    most = _mm512_maskz_max_epu32(kAll, most, _mm512_and_si512(_mm512_castps_si512(sum[v]), magnitude));
  }
  RowScale const scale = scale_of<Format::kInt8>(largest_word(most));
  __m512 const inverse = _mm512_set1_ps(scale.inverse), step = _mm512_set1_ps(scale.scale);
  __m512 const least = _mm512_set1_ps(-127);
  bool const leave = residual != nullptr && scale.scale == scale.scale;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    // NaN becomes -127, as in clamped().
    __m512 const scaled = _mm512_maskz_max_ps(kAll, _mm512_mul_ps(sum[v], inverse), least);
    __m512i const code = _mm512_maskz_cvtps_epi32(kAll, scaled);
    _mm_mask_storeu_epi8(codes + 16 * v, v == kLast ? last_codes : kAll, _mm512_maskz_cvtepi32_epi8(kAll, code));
    if (!leave) continue;
    __m512 const left = _mm512_fnmadd_ps(_mm512_maskz_cvtepi32_ps(kAll, code), step, sum[v]);
    _mm512_mask_storeu_ps(residual + 16 * v, v == kLast ? last : kAll, left);
  }
  return scale.scale;
}

// Quantizes a row. REQUIRES: 0 < dim <= kInt8ColumnsMost.
inline float quantize_int8_row(float const* values, float* residual, std::uint8_t* codes, std::size_t dim,
                               std::size_t ahead) {
  switch ((dim + 15) / 16) {
    case 1:
      return quantize_int8<1>(values, residual, codes, dim, ahead);
    case 2:
      return quantize_int8<2>(values, residual, codes, dim, ahead);
    case 3:
      return quantize_int8<3>(values, residual, codes, dim, ahead);
    case 4:
      return quantize_int8<4>(values, residual, codes, dim, ahead);
    case 5:
      return quantize_int8<5>(values, residual, codes, dim, ahead);
    case 6:
      return quantize_int8<6>(values, residual, codes, dim, ahead);
    case 7:
      return quantize_int8<7>(values, residual, codes, dim, ahead);
    default:
      return quantize_int8<8>(values, residual, codes, dim, ahead);
  }
}

}  // namespace gpups::kernels
#endif
