// SPDX-License-Identifier: Apache-2.0
// The packed form of rows of 64-bit integers: few bytes, for messages between ranks. It begins with a width for each
// row, 0 to 8 bytes, in 4 bits: row i has the low half of byte i / 2 if i is even, otherwise the high half. The numbers
// of the rows follow, in two's complement and without gaps.
//
// For gradients of rows (pack_sums.hpp), which are gathered from a table and added to others, with a check of sums that
// leave 64 bits. Arrays that are summed as a whole use pack_words.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// The offset of a row's numbers follows from the widths of the rows before it; `starts` contains it for every 32nd row.
inline constexpr std::size_t kPackedBlockRows = 32;

constexpr std::size_t packed_blocks(std::size_t rows) { return (rows + kPackedBlockRows - 1) / kPackedBlockRows; }
// Returns the bytes of the widths.
GPUPS_ANY_FN constexpr std::size_t packed_header_bytes(std::size_t rows) { return (rows + 1) / 2; }
constexpr std::size_t packed_rows_bytes_max(std::size_t rows, std::size_t dim) {
  return packed_header_bytes(rows) + rows * dim * sizeof(std::int64_t);
}

// Returns the number of bytes that hold an integer; 0 for 0.
GPUPS_FN inline std::uint32_t bytes_of_integer(std::int64_t x) {
  // All bits except copies of the sign, then the sign.
  std::uint64_t const folded = static_cast<std::uint64_t>(x) << 1 ^ static_cast<std::uint64_t>(x >> 63);
#ifdef __CUDACC__
  int const bits = 64 - __clzll(static_cast<long long>(folded));
#else
  int const bits = folded == 0 ? 0 : 64 - __builtin_clzll(folded);
#endif
  return static_cast<std::uint32_t>(bits + 7) / 8;
}

// Returns the width of a row. Any four bits are accepted: values above 8 count as 8.
GPUPS_FN inline std::uint32_t packed_width(std::uint8_t const* bytes, std::size_t row) {
  std::uint32_t const width = bytes[row / 2] >> (row % 2 * 4) & 15;
  return width < 8 ? width : 8;
}

// Received rows. `bytes` may contain anything until wait_find_packed_rows() has checked its size.
struct PackedRows {
  View<std::uint8_t const> bytes;
  std::size_t rows, dim;
};

}  // namespace gpups::kernels
