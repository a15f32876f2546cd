// SPDX-License-Identifier: Apache-2.0
// The positions of a stream's block as a bitmap, on the host. Readers accept any bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernels/sparse/stream_format.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kBlockWords = kStreamBlock / 64;  // of a bitmap

// Returns the number of set bits.
inline std::size_t bits_set(std::uint64_t const* bits, std::size_t words) {
  std::size_t count = 0;
  for (std::size_t w = 0; w < words; ++w) count += static_cast<std::size_t>(std::popcount(bits[w]));
  return count;
}

// Lists the words of [first, last) that are not 0, and returns their number. Has no branch per word, since branches of
// sparse blocks cannot be predicted.
inline std::size_t words_set(std::uint64_t const* bits, std::size_t first, std::size_t last,
                             std::uint16_t (&to)[kBlockWords + 1]) {
  std::size_t count = 0;
  for (std::size_t w = first; w < last; ++w) {
    to[count] = static_cast<std::uint16_t>(w);
    count += bits[w] != 0 ? 1 : 0;
  }
  return count;
}

// Lists the set bits of words number_of(0) .. number_of(count - 1) of a bitmap in order, and returns their number. `to`
// has room for 64 more.
template <class F>
std::size_t positions_of_words(std::uint64_t const* bits, std::size_t count, F number_of, std::uint16_t* to) {
  std::size_t found = 0;
#if defined(__AVX512VBMI2__)
  alignas(64) static constexpr auto kBytes = [] {
    struct {
      std::uint8_t at[64];
    } all{};
    for (unsigned i = 0; i < 64; ++i) all.at[i] = static_cast<std::uint8_t>(i);
    return all;
  }();
  __m512i const all = _mm512_load_si512(kBytes.at);
  for (std::size_t s = 0; s < count; ++s) {
    std::size_t const number = number_of(s);
    std::uint64_t const word = bits[number];
    __m512i const in_word = _mm512_maskz_compress_epi8(word, all);
    __m512i const base = _mm512_set1_epi16(static_cast<short>(number * 64));
    auto const store = [&](std::size_t at, __m256i bytes) {
      _mm512_storeu_si512(to + at, _mm512_add_epi16(_mm512_maskz_cvtepu8_epi16(~__mmask32{0}, bytes), base));
    };
    store(found, _mm512_maskz_extracti64x4_epi64(0xF, in_word, 0));
    auto const more = static_cast<std::size_t>(std::popcount(word));
    if (more > 32) store(found + 32, _mm512_maskz_extracti64x4_epi64(0xF, in_word, 1));
    found += more;
  }
#else
  for (std::size_t s = 0; s < count; ++s) {
    std::size_t const number = number_of(s);
    for (std::uint64_t word = bits[number]; word != 0; word &= word - 1) {
      to[found++] = static_cast<std::uint16_t>(number * 64U + static_cast<unsigned>(std::countr_zero(word)));
    }
  }
#endif
  return found;
}

// Lists the set bits of words [first, last) of a bitmap in order, and returns their number. `to` has room for 64 more.
// Skips empty words first, unless `most_have_some`; this changes only the speed.
inline std::size_t positions_of(std::uint64_t const* bits, std::size_t first, std::size_t last, std::uint16_t* to,
                                bool most_have_some = false) {
  if (most_have_some)
    return positions_of_words(
        bits, last - first, [&](std::size_t i) { return first + i; }, to);
  std::uint16_t set[kBlockWords + 1];
  std::size_t const count = words_set(bits, first, last, set);
  return positions_of_words(
      bits, count, [&](std::size_t i) { return std::size_t{set[i]}; }, to);
}

// Copies a bitmap to words, with zeros at the end. Returns false unless exactly `count` bits are set, all below
// `width`.
inline bool read_bitmap(std::uint8_t const* from, std::size_t count, std::uint32_t width, std::uint64_t* bits) {
  std::size_t const words = (width + 63) / 64;
  bits[words - 1] = 0;
  std::memcpy(bits, from, (width + 7) / 8);
  if (width % 64 != 0 && bits[words - 1] >> width % 64 != 0) return false;
  return bits_set(bits, words) == count;
}

// Writes a bitmap through an array of bytes that are 0 or 1, eight of which become one byte of the bitmap. Setting
// single bits would be slower, since each would wait for the one before it.
inline void write_bitmap(std::uint16_t const* positions, std::size_t count, std::uint32_t width, std::uint8_t* to) {
  alignas(64) std::uint8_t is_set[kStreamBlock];
  std::size_t const bytes = (width + 7) / 8;
  std::memset(is_set, 0, 8 * bytes);
  for (std::size_t i = 0; i < count; ++i) is_set[positions[i]] = 1;
  for (std::size_t b = 0; b < bytes; ++b) {
    std::uint64_t eight;
    std::memcpy(&eight, is_set + 8 * b, 8);
    to[b] = static_cast<std::uint8_t>(eight * 0x0102040810204080U >> 56);
  }
}

}  // namespace gpups::kernels
