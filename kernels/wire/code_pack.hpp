// SPDX-License-Identifier: Apache-2.0
// The numbers of a pack to codes and back: loops over Code<F>, which become vector code, but for halves the machine's
// own conversion where it has one, to the same bits.
#pragma once

#include "kernels/wire/code.hpp"
#include "kernels/wire/pack.hpp"

namespace gpups::kernels {

template <Format F>
GPUPS_FN inline void encode_pack(float const (&x)[kPack], std::uint32_t (&code)[kPack]) {
#if defined(__AVX512DQ__) && !defined(__CUDACC__)
  if constexpr (F == Format::kHalf) {
    __m512 const most = _mm512_set1_ps(65504);
    __m512i const magnitude = _mm512_set1_epi32(~kFloatSign), infinity = _mm512_set1_epi32(kFloatInfinity);
    for (std::size_t k = 0; k < kPack; k += 16) {
      __m512 const all = _mm512_loadu_ps(x + k);
      auto const is_finite = _mm512_cmplt_epu32_mask(_mm512_and_si512(_mm512_castps_si512(all), magnitude), infinity);
      __m512 const finite = _mm512_maskz_range_ps(is_finite, all, most, 0b0010);  // the smaller magnitude, its sign
      __m512i const half = _mm512_maskz_cvtepu16_epi32(0xFFFF, _mm512_maskz_cvtps_ph(0xFFFF, finite, 0));
      _mm512_storeu_si512(code + k, _mm512_mask_mov_epi32(_mm512_set1_epi32(0x7E00), is_finite, half));
    }
    return;
  }
#endif
  for (std::size_t k = 0; k < kPack; ++k) code[k] = Code<F>::encode(x[k]);
}

template <Format F>
GPUPS_FN inline void decode_pack(std::uint32_t const (&code)[kPack], float (&x)[kPack]) {
#if defined(__AVX512F__) && !defined(__CUDACC__)
  if constexpr (F == Format::kHalf) {
    for (std::size_t k = 0; k < kPack; k += 16) {
      __m256i const half = _mm512_maskz_cvtepi32_epi16(0xFFFF, _mm512_loadu_si512(code + k));
      _mm512_storeu_ps(x + k, _mm512_maskz_cvtph_ps(0xFFFF, half));
    }
    return;
  }
#endif
  for (std::size_t k = 0; k < kPack; ++k) x[k] = Code<F>::decode(code[k]);
}

}  // namespace gpups::kernels
