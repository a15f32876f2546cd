// SPDX-License-Identifier: Apache-2.0
// Rows of 64-bit integers as they travel, in as few bytes as hold them. In front is a width for each row, 0 to 8 bytes,
// in 4 bits: row i has the low half of byte i / 2 if i is even. Then come the rows' numbers, in two's complement and
// with nothing between them.
//
// For gradients of rows (pack_sums.hpp), which are gathered from all over a table and added to others, where a sum
// that leaves 64 bits is found. Arrays that are summed whole are those of pack_words.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Where the numbers of a row lie follows from the widths of those before it; `starts` says it for every 32nd row.
inline constexpr std::size_t kPackedBlockRows = 32;

constexpr std::size_t packed_blocks(std::size_t rows) { return (rows + kPackedBlockRows - 1) / kPackedBlockRows; }
// Of the widths.
GPUPS_ANY_FN constexpr std::size_t packed_header_bytes(std::size_t rows) { return (rows + 1) / 2; }
constexpr std::size_t packed_rows_bytes_max(std::size_t rows, std::size_t dim) {
  return packed_header_bytes(rows) + rows * dim * sizeof(std::int64_t);
}

// The bytes that hold an integer; 0 for 0.
GPUPS_FN inline std::uint32_t bytes_of_integer(std::int64_t x) {
  // All bits but the sign's copies, and the sign.
  std::uint64_t const folded = static_cast<std::uint64_t>(x) << 1 ^ static_cast<std::uint64_t>(x >> 63);
#ifdef __CUDACC__
  int const bits = 64 - __clzll(static_cast<long long>(folded));
#else
  int const bits = folded == 0 ? 0 : 64 - __builtin_clzll(folded);
#endif
  return static_cast<std::uint32_t>(bits + 7) / 8;
}

// Of four bits any are a width, what is above 8 being 8.
GPUPS_FN inline std::uint32_t packed_width(std::uint8_t const* bytes, std::size_t row) {
  std::uint32_t const width = bytes[row / 2] >> (row % 2 * 4) & 15;
  return width < 8 ? width : 8;
}

// Rows that have been received. `bytes` are all that came, and may be anything before wait_find_packed_rows().
struct PackedRows {
  View<std::uint8_t const> bytes;
  std::size_t rows, dim;
};

}  // namespace gpups::kernels
