// SPDX-License-Identifier: Apache-2.0
// The sparse stream: the elements of a long vector that are not zero, as bytes.
//
// A stream tells of a range of the vector, which is cut into blocks of 65536 elements; the last may be shorter. It is
//   StreamHeader | a word for each block, and 0 if they are odd | values of all blocks | places of all blocks
// with numbers as they lie in memory, little-endian. Each block has the form of places that takes fewest bytes:
//   kGaps     a byte for the zeros before an element, up to 254; 255 stands for 255 zeros with no element behind them
//   kOffsets  16 bits: the place in the block
//   kBitmap   bit i % 8 of byte i / 8 for place i
//   kDense    nothing: there is a value for each place
// With uniform places of density p, gaps take 1 + 1 / (e^(255 p) - 1) bytes: 1.083 at 1 %, 1.00004 at 4 %; offsets
// are smaller below .27 %, bitmaps above 12.5 %. A block's word adds 4 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"

namespace gpups::kernels {

inline constexpr std::uint8_t kStreamVersion = 1;
inline constexpr std::size_t kStreamBlock = 65536;                        // elements
inline constexpr std::uint64_t kStreamElements = std::uint64_t{1} << 32;  // of a vector, at most

// Values are as in kernels/wire/format.hpp, an int8 with a scale for its block; kUnits are whole units of a grid, in
// the least of 1, 2, 4 and 8 bytes that hold all of a block.
enum class StreamValues : std::uint8_t { kFloat, kHalf, kBFloat16, kInt8, kUnits };
enum class PositionEncoding : std::uint8_t { kGaps, kOffsets, kBitmap, kDense };

// How a stream says its values.
struct ValueForm {
  StreamValues values = StreamValues::kFloat;
  int grid_log2 = 0;  // units are multiples of 2^grid_log2
  bool operator==(ValueForm const&) const = default;
};

struct StreamHeader {
  std::uint8_t version;
  StreamValues values;
  std::int16_t grid_log2;  // of units: one is 2^grid_log2
  std::uint32_t zero;
  std::uint64_t first, size;  // of the range, in elements
  std::uint64_t count;        // of elements in the stream
  std::uint64_t value_bytes, position_bytes;
};
static_assert(sizeof(StreamHeader) == 48);

// What a block's word says. An empty block's word is 0.
struct BlockWord {
  std::uint32_t count;      // of elements, at most 65536: 17 bits. With kDense this counts all places
  std::uint32_t skips;      // of 255 among the gaps: 9 bits
  PositionEncoding kind;    // 2 bits
  std::uint8_t width_log2;  // of units, in bytes: 2 bits

  GPUPS_ANY_FN static BlockWord of(std::uint32_t word) {
    return {word & 0x1FFFFU, word >> 17 & 0x1FFU, static_cast<PositionEncoding>(word >> 26 & 3U),
            static_cast<std::uint8_t>(word >> 28 & 3U)};
  }
  GPUPS_ANY_FN std::uint32_t bits() const {
    return count | skips << 17 | static_cast<std::uint32_t>(kind) << 26 | std::uint32_t{width_log2} << 28;
  }
};

GPUPS_ANY_FN constexpr std::size_t stream_blocks(std::uint64_t size) {
  return (size + kStreamBlock - 1) / kStreamBlock;
}
// Elements of a block of a range.
GPUPS_ANY_FN constexpr std::uint32_t block_width(std::uint64_t size, std::size_t block) {
  std::uint64_t const left = size - block * kStreamBlock;
  return static_cast<std::uint32_t>(left < kStreamBlock ? left : kStreamBlock);
}
// Bytes in front of the values; they begin at a multiple of 8.
GPUPS_ANY_FN constexpr std::size_t stream_head_bytes(std::size_t blocks) {
  return sizeof(StreamHeader) + (blocks + 1) / 2 * 8;
}

// Bytes of `count` values of a block; each block's begin at a multiple of what one value takes.
GPUPS_ANY_FN constexpr std::size_t value_bytes(StreamValues values, std::size_t count, unsigned width_log2) {
  if (count == 0) return 0;
  switch (values) {
    case StreamValues::kFloat:
      return 4 * count;
    case StreamValues::kHalf:
    case StreamValues::kBFloat16:
      return 2 * count;
    case StreamValues::kInt8:
      return 4 + (count + 3) / 4 * 4;
    case StreamValues::kUnits:
      return ((count << width_log2) + 7) / 8 * 8;
  }
  return 0;
}
GPUPS_ANY_FN constexpr std::size_t position_bytes(BlockWord word, std::uint32_t width) {
  switch (word.kind) {
    case PositionEncoding::kGaps:
      return std::size_t{word.count} + word.skips;
    case PositionEncoding::kOffsets:
      return std::size_t{2} * word.count;
    case PositionEncoding::kBitmap:
      return (width + 7) / 8;
    case PositionEncoding::kDense:
      return 0;
  }
  return 0;
}

}  // namespace gpups::kernels
