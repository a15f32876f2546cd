// SPDX-License-Identifier: Apache-2.0
// Packing of the rows of packed_rows.hpp with vectors of 8 integers: one permutation of bytes packs them, another
// unpacks them.
#pragma once

#if defined(__AVX512VBMI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && !defined(__CUDACC__)
#define GPUPS_PACK_VECTORS 1
#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpups::kernels {

// Byte b of integer e is packed to byte e * width + b. Unpacking puts the bytes of an integer at its upper end; an
// arithmetic shift then extends the sign.
struct PackPermutations {
  alignas(64) std::uint8_t pack[9][64] = {}, unpack[9][64] = {};
  std::uint64_t filled[9] = {};  // the bytes that unpacking fills

  constexpr PackPermutations() {
    for (std::size_t width = 1; width <= 8; ++width) {
      for (std::size_t e = 0; e < 8; ++e) {
        for (std::size_t b = 0; b < width; ++b) {
          std::size_t const upper = 8 * e + 8 - width + b;
          pack[width][e * width + b] = static_cast<std::uint8_t>(8 * e + b);
          unpack[width][upper] = static_cast<std::uint8_t>(e * width + b);
          filled[width] |= std::uint64_t{1} << upper;
        }
      }
    }
  }
};
inline constexpr PackPermutations kPackPermutations;

// Returns a mask of the lowest `count` bits.
inline std::uint64_t low_bits(std::size_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Calls take(first, count) for the vectors of a row: 8 integers each, fewer in the last.
template <class Take>
[[gnu::always_inline]] inline void each_vector(std::size_t dim, Take take) {
  std::size_t j = 0;
  for (; j + 8 <= dim; j += 8) take(j, std::size_t{8});
  if (j < dim) take(j, dim - j);
}

// Returns the bytes that hold every integer of the row.
inline std::uint32_t width_of_row(std::int64_t const* row, std::size_t dim) {
  __m512i folded = _mm512_setzero_si512();
  each_vector(dim, [&](std::size_t j, std::size_t count) {
    __m512i const x = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(low_bits(count)), row + j);
    __m512i const sign = _mm512_maskz_srai_epi64(0xFF, x, 63);
    folded = _mm512_or_si512(folded, _mm512_xor_si512(_mm512_maskz_slli_epi64(0xFF, x, 1), sign));
  });
  __m256i const four =
      _mm256_or_si256(_mm512_maskz_extracti64x4_epi64(0xF, folded, 0), _mm512_maskz_extracti64x4_epi64(0xF, folded, 1));
  __m128i const two = _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
  auto const all =
      static_cast<std::uint64_t>(_mm_cvtsi128_si64(two)) | static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
  return static_cast<std::uint32_t>((64 - _lzcnt_u64(all) + 7) / 8);
}

// Packs a row. REQUIRES: width > 0.
inline void write_row(std::int64_t const* row, std::size_t dim, std::uint32_t width, std::uint8_t* to) {
  __m512i const permutation = _mm512_load_si512(kPackPermutations.pack[width]);
  each_vector(dim, [&](std::size_t j, std::size_t count) {
    __m512i const x = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(low_bits(count)), row + j);
    _mm512_mask_storeu_epi8(to + j * width, low_bits(count * width),
                            _mm512_maskz_permutexvar_epi8(~0ULL, permutation, x));
  });
}

// Adds a packed row to `into`. Returns true if a sum has left the range of 64 bits. REQUIRES: width > 0.
inline bool add_row(std::uint8_t const* from, std::size_t dim, std::uint32_t width, std::int64_t* into) {
  __m512i const permutation = _mm512_load_si512(kPackPermutations.unpack[width]);
  __mmask64 const filled = kPackPermutations.filled[width];
  __m128i const shift = _mm_cvtsi32_si128(static_cast<int>(64 - 8 * width));
  __m512i overflown = _mm512_setzero_si512();
  each_vector(dim, [&](std::size_t j, std::size_t count) {
    auto const columns = static_cast<__mmask8>(low_bits(count));
    __m512i const bytes = _mm512_maskz_loadu_epi8(low_bits(count * width), from + j * width);
    __m512i const x = _mm512_maskz_sra_epi64(0xFF, _mm512_maskz_permutexvar_epi8(filled, permutation, bytes), shift);
    __m512i const y = _mm512_maskz_loadu_epi64(columns, into + j), sum = _mm512_add_epi64(x, y);
    _mm512_mask_storeu_epi64(into + j, columns, sum);
    overflown = _mm512_or_si512(overflown, _mm512_and_si512(_mm512_xor_si512(sum, x), _mm512_xor_si512(sum, y)));
  });
  return _mm512_movepi64_mask(overflown) != 0;
}

}  // namespace gpups::kernels
#endif
