// SPDX-License-Identifier: Apache-2.0
// Packs an array of 64-bit integers into few bytes: each block of kPackedWordBlock words has a width of 0 to 8 bytes,
// which holds all its words. Moves 8 bytes per word and the packed bytes.
//
// For arrays that are summed as a whole, such as gradients of dense layers. No function blocks, so that a collective
// can proceed at the same time; sums wrap around on overflow; and a GPU reads and writes each plane with full-width
// accesses. Rows of tables, which are selected by number and often zero, use packed_rows.hpp instead: a width for each
// row, without gaps, so a GPU moves most of them byte by byte.
//
// A block of n words of w bytes consists of one plane of n 8-byte words if w = 8, otherwise of a plane for each power
// of two in w: the lowest 4 bytes of all words, then their next 2, then their next 1, as far as w has them. So no word
// crosses an alignment boundary, and a block takes n * w bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kPackedWordBlock = 512;  // words; the last block may have fewer
inline constexpr std::size_t kWordBytesMax = 8;

// Returns the number of blocks.
constexpr std::size_t packed_word_blocks(std::size_t words) {
  return (words + kPackedWordBlock - 1) / kPackedWordBlock;
}

// widths[b] = the number of bytes that hold every word of block b with its sign; 0 if all are zero.
struct FindWidths {
  View<std::int64_t const> words;  // (n)
  View<std::uint8_t> widths;       // (packed_word_blocks(n))
};
void find_widths(Stream& stream, FindWidths const& arguments);

// Writes the words of block b at bytes[offsets[b]].
struct PackWords {
  View<std::int64_t const> words;     // (n)
  View<std::uint8_t const> widths;    // (packed_word_blocks(n)), large enough for the words
  View<std::uint32_t const> offsets;  // (packed_word_blocks(n)), multiples of 8
  View<std::uint8_t> bytes;           // begins at a multiple of 8
};
void pack_words(Stream& stream, PackWords const& arguments);

// into[i] = word i, or += with `add`, which wraps around on overflow.
struct UnpackWords {
  View<std::uint8_t const> bytes;     // begins at a multiple of 8
  View<std::uint8_t const> widths;    // (packed_word_blocks(n)), at most 8
  View<std::uint32_t const> offsets;  // (packed_word_blocks(n)); blocks end within the bytes
  View<std::int64_t> into;            // (n)
  bool add;
};
void unpack_words(Stream& stream, UnpackWords const& arguments);

}  // namespace gpups::kernels
