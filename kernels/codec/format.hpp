// SPDX-License-Identifier: Apache-2.0
// The formats of encoded rows of floats, and their sizes in bytes. Messages between ranks contain such rows.
//
// A row is encoded as codes of equal width, in the order of its columns, the first in the lowest bits. Its bytes are
// padded to a multiple of 4. Formats with few bits have a scale for each row: the value of a column is its code times
// the scale. Scales have at most 16 significant bits, so this product is exact as a float.
//
// Largest errors, where M is the largest magnitude in the row and |x| the magnitude of the value, and bits per value:
//   kFloat    none                                        32
//   kHalf     2^-11 |x|, or 2^-25; clamped to 65504       16
//   kBFloat16 2^-8 |x|, or 2^-134                         16
//   kE4M3     2^-4 |x|, or 2^-17 M                         8, and a scale that is a power of two
//   kE5M2     2^-3 |x|, or 2^-31 M                         8, and a scale that is a power of two
//   kInt8     M / 254  (1 + 2^-14)                         8, and a scale of M / 127
//   kInt4     M / 14  (1 + 2^-14)                          4, and a scale of M / 7
//   kInt2     M / 2  (1 + 2^-14)                           2, and a scale of M
// Stochastic rounding, for the last three, doubles the largest error and makes its mean zero, except for 2^-17 of the
// scale. A row with a scale is encoded as zeros if M < 2^-100. If M >= 2^127, or M is not finite, the scale is NaN, and
// so are all values. Formats without scales encode NaN for a value that is not finite, except kFloat, which changes
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

enum class Format : std::uint8_t { kFloat, kHalf, kBFloat16, kE4M3, kE5M2, kInt8, kInt4, kInt2 };
inline constexpr Format kFormats[] = {Format::kFloat, Format::kHalf, Format::kBFloat16, Format::kE4M3,
                                      Format::kE5M2,  Format::kInt8, Format::kInt4,     Format::kInt2};

constexpr std::size_t bits_of(Format format) {
  constexpr std::size_t kBits[] = {32, 16, 16, 8, 8, 8, 4, 2};
  return kBits[static_cast<int>(format)];
}
constexpr bool is_integer(Format format) { return format >= Format::kInt8; }
constexpr bool has_scale(Format format) { return format >= Format::kE4M3; }

// How a value between two codes is rounded: to the nearest code, or up with the probability of the fraction.
enum class Rounding { kNearest, kStochastic };

// Selects the random numbers of stochastic rounding: row i of a call uses those of (seed, use, first_row + i). Calls
// with equal keys round equal values to equal codes.
struct RoundingKey {
  std::uint64_t seed = 0;
  std::uint32_t use = 0;  // distinguishes calls with the same seed, for instance by the number of the step
  std::uint64_t first_row = 0;
};

// Returns the bytes of the codes of one row.
constexpr std::size_t code_bytes(Format format, std::size_t dim) { return (dim * bits_of(format) + 31) / 32 * 4; }

// Returns the bytes of n encoded rows: their codes, then their scales.
constexpr std::size_t encoded_bytes(Format format, std::size_t n, std::size_t dim) {
  return n * (code_bytes(format, dim) + (has_scale(format) ? sizeof(float) : 0));
}

// Encoded rows. Byte is std::uint8_t and Scale is float; both are const for rows that are only read.
template <class Byte, class Scale>
struct EncodedRowsOf {
  Format format;
  std::size_t dim;
  View<Byte> codes;    // (n, code_bytes(format, dim)), begins at a multiple of 4 bytes
  View<Scale> scales;  // (n), or empty if the format has no scales

  // REQUIRES: dim > 0.
  constexpr std::size_t rows() const { return codes.size() / code_bytes(format, dim); }
};
using EncodedRows = EncodedRowsOf<std::uint8_t, float>;
using EncodedRowsIn = EncodedRowsOf<std::uint8_t const, float const>;

// Return views of n encoded rows in one piece of memory. REQUIRES: encoded.size() >= encoded_bytes(format, n, dim); the
// memory begins at a multiple of 4 bytes.
inline EncodedRows encoded_rows(View<std::uint8_t> encoded, Format format, std::size_t n, std::size_t dim) {
  std::size_t const codes = n * code_bytes(format, dim);
  auto* const scales = reinterpret_cast<float*>(encoded.data() + codes);
  return {format, dim, encoded.slice(0, codes), {scales, has_scale(format) ? n : 0, encoded.device()}};
}
inline EncodedRowsIn encoded_rows(View<std::uint8_t const> encoded, Format format, std::size_t n, std::size_t dim) {
  std::size_t const codes = n * code_bytes(format, dim);
  auto const* const scales = reinterpret_cast<float const*>(encoded.data() + codes);
  return {format, dim, encoded.slice(0, codes), {scales, has_scale(format) ? n : 0, encoded.device()}};
}

}  // namespace gpups::kernels
