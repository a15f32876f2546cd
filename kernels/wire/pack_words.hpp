// SPDX-License-Identifier: Apache-2.0
// An array of 64-bit integers in as few bytes as hold them: each block of kPackedWordBlock has a width, of 0 to 8
// bytes, that all its words are cut to. Moves 8 bytes per word and its width.
//
// For arrays that are summed whole, such as gradients of dense layers: nothing waits, so that a collective can go on
// meanwhile, sums wrap, and a GPU reads and writes each plane at full width. Rows that are picked by number and have a
// width each, since some are zeros, are those of packed_rows.hpp: without gaps, so that a GPU moves most of them byte
// by byte.
//
// A block of n words of w bytes is one plane of n 8-byte words, or a plane for each power of two in w: the words'
// lowest 4 bytes, then their next 2, then their next 1, as far as w has them. So no word crosses an alignment boundary,
// and a block takes n * w bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kPackedWordBlock = 512;  // words; the last block may have fewer
inline constexpr std::size_t kWordBytesMax = 8;

constexpr std::size_t packed_word_blocks(std::size_t words) {
  return (words + kPackedWordBlock - 1) / kPackedWordBlock;
}

// widths[b] = the bytes that hold every word of block b and its sign; 0 where all are zero.
struct FindWidths {
  View<std::int64_t const> words;  // (n)
  View<std::uint8_t> widths;       // (packed_word_blocks(n))
};
void find_widths(Stream& stream, FindWidths const& arguments);

// Writes block b at bytes[offsets[b]].
struct PackWords {
  View<std::int64_t const> words;     // (n)
  View<std::uint8_t const> widths;    // (packed_word_blocks(n)), enough for the words
  View<std::uint32_t const> offsets;  // (packed_word_blocks(n)), multiples of 8
  View<std::uint8_t> bytes;           // begins at a multiple of 8
};
void pack_words(Stream& stream, PackWords const& arguments);

// into[i] = the word i that was narrowed, or += where `add`, wrapping.
struct UnpackWords {
  View<std::uint8_t const> bytes;     // begins at a multiple of 8
  View<std::uint8_t const> widths;    // (packed_word_blocks(n)), at most 8
  View<std::uint32_t const> offsets;  // (packed_word_blocks(n)); blocks end within the bytes
  View<std::int64_t> into;            // (n)
  bool add;
};
void unpack_words(Stream& stream, UnpackWords const& arguments);

}  // namespace gpups::kernels
