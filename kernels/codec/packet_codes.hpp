// SPDX-License-Identifier: Apache-2.0
// Conversion of a packet of numbers in a format of format.hpp: loops over Code<F>, or instructions for half floats if
// the machine has them. The bits are the same.
#pragma once

#include "kernels/codec/code.hpp"
#include "kernels/codec/packet.hpp"

#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

// Encodes x / scale, rounded to nearest.
template <Format F>
GPUPS_FN inline void encode_packet(float const (&x)[kPacketSize], std::uint32_t (&code)[kPacketSize]) {
#if defined(__AVX512F__) && !defined(__CUDACC__)
  if constexpr (F == Format::kHalf) {
    constexpr __mmask16 kAll = 0xFFFF;
    __m512 const most = _mm512_set1_ps(65504), least = _mm512_set1_ps(-65504);
    __m512i const infinity = _mm512_set1_epi32(kFloatInfinity), magnitude = _mm512_set1_epi32(~kFloatSign);
    __m512i const nan = _mm512_set1_epi32(0x7E00);
    for (std::size_t k = 0; k < kPacketSize; k += 16) {
      __m512 const given = _mm512_loadu_ps(x + k);
      __m512 const finite = _mm512_maskz_min_ps(kAll, _mm512_maskz_max_ps(kAll, given, least), most);
      __m512i const half = _mm512_maskz_cvtepu16_epi32(kAll, _mm512_maskz_cvtps_ph(kAll, finite, 0));
      __mmask16 const is_finite =
          _mm512_cmplt_epu32_mask(_mm512_and_si512(_mm512_castps_si512(given), magnitude), infinity);
      _mm512_storeu_si512(code + k, _mm512_mask_mov_epi32(nan, is_finite, half));
    }
    return;
  }
#endif
  for (std::size_t k = 0; k < kPacketSize; ++k) code[k] = Code<F>::encode(x[k]);
}

// Decodes codes, without multiplication by the scale.
template <Format F>
GPUPS_FN inline void decode_packet(std::uint32_t const (&code)[kPacketSize], float (&x)[kPacketSize]) {
#if defined(__AVX512F__) && !defined(__CUDACC__)
  if constexpr (F == Format::kHalf) {
    constexpr __mmask16 kAll = 0xFFFF;
    for (std::size_t k = 0; k < kPacketSize; k += 16) {
      __m256i const half = _mm512_maskz_cvtepi32_epi16(kAll, _mm512_loadu_si512(code + k));
      _mm512_storeu_ps(x + k, _mm512_maskz_cvtph_ps(kAll, half));
    }
    return;
  }
#endif
  for (std::size_t k = 0; k < kPacketSize; ++k) x[k] = Code<F>::decode(code[k]);
}

}  // namespace gpups::kernels
