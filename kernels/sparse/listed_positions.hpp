// SPDX-License-Identifier: Apache-2.0
// Conversion of the positions of a stream's block between 16-bit numbers and their encodings as gaps or offsets, on the
// host. Readers accept any bytes: they find invalid encodings, and write no more than there is room for.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernels/sparse/stream_format.hpp"

namespace gpups::kernels {

// The room of a list of positions, including what vector stores write behind its end.
inline constexpr std::size_t kPositionRoom = kStreamBlock + 512 + 64;

// Returns false unless the bytes are the gaps of `count` positions below `width`.
inline bool read_gaps(std::uint8_t const* gaps, std::size_t bytes, std::size_t count, std::uint32_t width,
                      std::uint16_t* to) {
  std::size_t found = 0, i = 0;
  std::uint32_t next = 0;  // one more than the last position
#if defined(__AVX512F__)
  constexpr __mmask16 kAll = 0xFFFF;  // intrinsics without a mask make g++ 12 warn
  __m512i const one = _mm512_set1_epi32(1), skip = _mm512_set1_epi32(255), zero = _mm512_setzero_si512();
  for (; i + 16 <= bytes; i += 16) {
    __m512i const gap = _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<__m128i const*>(gaps + i)));
    __mmask16 const is_position = _mm512_cmpneq_epi32_mask(gap, skip);
    __m512i sum = _mm512_mask_add_epi32(gap, is_position, gap, one);
    sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(kAll, sum, zero, 15));
    sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(kAll, sum, zero, 14));
    sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(kAll, sum, zero, 12));
    sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(kAll, sum, zero, 8));
    __m512i const position = _mm512_add_epi32(sum, _mm512_set1_epi32(static_cast<int>(next - 1)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + found),
                        _mm512_maskz_cvtepi32_epi16(kAll, _mm512_maskz_compress_epi32(is_position, position)));
    found += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(is_position)));
    next += static_cast<std::uint32_t>(_mm_extract_epi32(_mm512_maskz_extracti32x4_epi32(0xF, sum, 3), 3));
  }
#endif
  for (; i < bytes; ++i) {
    bool const is_position = gaps[i] != 255;
    next += gaps[i] + (is_position ? 1U : 0U);
    to[found] = static_cast<std::uint16_t>(next - 1);
    found += is_position ? 1 : 0;
  }
  return found == count && next <= width && gaps[bytes - 1] != 255;
}

// Returns false unless the bytes are `count` ascending positions below `width`. REQUIRES: count > 0.
inline bool read_offsets(std::uint8_t const* from, std::size_t count, std::uint32_t width, std::uint16_t* to) {
  std::memcpy(to, from, 2 * count);
  std::uint32_t wrong = 0;
  for (std::size_t i = 1; i < count; ++i) wrong |= to[i] <= to[i - 1] ? 1U : 0U;
  return wrong == 0 && to[count - 1] < width;
}

// Returns the number of skips (bytes 255) in the gaps of these positions.
inline std::uint32_t skips_of(std::uint16_t const* positions, std::size_t count) {
  std::uint32_t skips = count == 0 ? 0 : positions[0] / 255U;
  for (std::size_t i = 1; i < count; ++i) skips += (positions[i] - positions[i - 1] - 1U) / 255U;
  return skips;
}

// Writes the gaps, and returns their number of bytes. `to` has room for 64 more.
inline std::size_t write_gaps(std::uint16_t const* positions, std::size_t count, std::uint8_t* to) {
  std::uint8_t* const begin = to;
  std::uint32_t next = 0;
  std::size_t i = 0;
  auto const write = [&](std::size_t end) {
    for (; i < end; ++i) {
      std::uint32_t gap = positions[i] - next;
      for (; gap >= 255; gap -= 255) *to++ = 255;
      *to++ = static_cast<std::uint8_t>(gap);
      next = positions[i] + 1U;
    }
  };
#if defined(__AVX512VBMI2__)
  // A gap below 510 is the two bytes 255 and the rest; the first is dropped for gaps below 255.
  __m512i const one = _mm512_set1_epi16(1), skip = _mm512_set1_epi16(255);
  write(std::min<std::size_t>(1, count));
  while (i + 32 <= count) {
    __m512i const here = _mm512_loadu_si512(positions + i), last = _mm512_loadu_si512(positions + i - 1);
    __m512i const gap = _mm512_sub_epi16(_mm512_sub_epi16(here, last), one);
    if (_mm512_cmpge_epu16_mask(gap, _mm512_set1_epi16(510)) != 0) {
      next = positions[i - 1] + 1U;
      write(i + 32);
      continue;
    }
    __mmask32 const skips = _mm512_cmpge_epu16_mask(gap, skip);
    __m512i const rest = _mm512_mask_sub_epi16(gap, skips, gap, skip);
    __m512i const both = _mm512_or_si512(_mm512_slli_epi16(rest, 8), skip);
    std::uint64_t const kept = _mm512_movepi8_mask(
        _mm512_or_si512(_mm512_maskz_set1_epi16(skips, 0x80), _mm512_set1_epi16(static_cast<short>(0x8000))));
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, both));
    to += std::popcount(kept);
    i += 32;
  }
  if (i > 0) next = positions[i - 1] + 1U;
#endif
  write(count);
  return static_cast<std::size_t>(to - begin);
}

}  // namespace gpups::kernels
