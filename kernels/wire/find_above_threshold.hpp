// SPDX-License-Identifier: Apache-2.0
// Finds the few large elements among many floats, on the host, without a branch for each. This is the inner loop of
// sparsification.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernels/wire/code.hpp"

namespace gpups::kernels {

// The number of floats that are searched at a time, a multiple of 16. These floats and the list of the large ones stay
// in a core's caches.
inline constexpr std::size_t kThresholdBlock = 8192;

// Lists the positions in x, ascending, and the values of the floats whose magnitude has bits >= least, and returns
// their number. `places` and `values` have room for count + 16. REQUIRES: count <= kThresholdBlock, least > 0.
inline std::size_t find_above_threshold(float const* x, std::size_t count, std::uint32_t least, std::uint32_t* places,
                                        float* values) {
  std::size_t found = 0;
  std::size_t i = 0;
// With the thread sanitizer g++ 12 miscompiles this: it spills 16 bits of a mask, and counts the set bits of 32.
#if defined(__AVX512F__) && !defined(__SANITIZE_THREAD__)
  constexpr std::size_t kAhead = 512;  // floats; hardware prefetch stops at page boundaries
  __m512i const magnitude = _mm512_set1_epi32(0x7FFFFFFF), bound = _mm512_set1_epi32(static_cast<int>(least));
  __m512i const step = _mm512_set1_epi32(16);
  __m512i here = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#pragma GCC unroll 4
  for (; i + 16 <= count; i += 16) {
    _mm_prefetch(x + i + kAhead, _MM_HINT_T0);
    __m512i const bits = _mm512_loadu_si512(x + i);
    __mmask16 const large = _mm512_cmpge_epu32_mask(_mm512_and_si512(bits, magnitude), bound);
    _mm512_storeu_si512(places + found, _mm512_maskz_compress_epi32(large, here));
    _mm512_storeu_si512(values + found, _mm512_maskz_compress_epi32(large, bits));
    found += static_cast<std::size_t>(__builtin_popcount(large));
    here = _mm512_add_epi32(here, step);
  }
#endif
  for (; i < count; ++i) {
    places[found] = static_cast<std::uint32_t>(i);
    values[found] = x[i];
    found += magnitude_bits(x[i]) >= least ? 1 : 0;
  }
  return found;
}

}  // namespace gpups::kernels
