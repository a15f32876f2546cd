// SPDX-License-Identifier: Apache-2.0
// The format of sparse streams: the elements of a long vector that are not zero, as bytes.
//
// A stream contains a range of the vector, which is split into blocks of 65536 elements; the last may be shorter:
//   StreamHeader | a word for each block, and 0 if their number is odd | values of all blocks | positions of all blocks
// Numbers are little-endian. Each block uses the position encoding that takes the fewest bytes:
//   kGaps     a byte for the zeros before an element, up to 254; 255 stands for 255 zeros without an element after them
//   kOffsets  16 bits: the position in the block
//   kBitmap   bit i % 8 of byte i / 8 for position i
//   kDense    nothing: there is a value for each position
// With uniform positions of density p, gaps take 1 + 1 / (e^(255 p) - 1) bytes: 1.083 at 1 %, 1.00004 at 4 %. Offsets
// are smaller below .27 %, bitmaps above 12.5 %. The word of a block adds 4 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline constexpr std::uint8_t kStreamVersion = 1;
inline constexpr std::size_t kStreamBlock = 65536;                        // elements
inline constexpr std::uint64_t kStreamElements = std::uint64_t{1} << 32;  // of a vector, at most

// The form of values. Floats are as in kernels/codec/format.hpp, kInt8 with one scale for each block. kUnits are whole
// units of a grid, in the fewest of 1, 2, 4 and 8 bytes that hold all of a block.
enum class StreamValues : std::uint8_t { kFloat, kHalf, kBFloat16, kInt8, kUnits };
enum class PositionEncoding : std::uint8_t { kGaps, kOffsets, kBitmap, kDense };

// The form in which a stream has its values.
struct ValueForm {
  StreamValues values = StreamValues::kFloat;
  int grid_log2 = 0;  // units are multiples of 2^grid_log2
  bool operator==(ValueForm const&) const = default;
};

// The first 48 bytes of a stream.
struct StreamHeader {
  std::uint8_t version;
  StreamValues values;
  std::int16_t grid_log2;  // for kUnits: a unit is 2^grid_log2
  std::uint32_t zero;
  std::uint64_t first, size;  // of the range, in elements
  std::uint64_t count;        // elements in the stream
  std::uint64_t value_bytes, position_bytes;
};
static_assert(sizeof(StreamHeader) == 48);

// The word of a block. That of an empty block is 0.
struct BlockWord {
  std::uint32_t count;      // elements, at most 65536: 17 bits. With kDense, all positions count
  std::uint32_t skips;      // bytes 255 among the gaps: 9 bits
  PositionEncoding kind;    // 2 bits
  std::uint8_t width_log2;  // log2 of the bytes of a unit: 2 bits

  GPUPS_ANY_FN static BlockWord of(std::uint32_t word) {
    return {word & 0x1FFFFU, word >> 17 & 0x1FFU, static_cast<PositionEncoding>(word >> 26 & 3U),
            static_cast<std::uint8_t>(word >> 28 & 3U)};
  }
  GPUPS_ANY_FN std::uint32_t bits() const {
    return count | skips << 17 | static_cast<std::uint32_t>(kind) << 26 | std::uint32_t{width_log2} << 28;
  }
};

// Returns the number of blocks of a range of `size` elements.
GPUPS_ANY_FN constexpr std::size_t stream_blocks(std::uint64_t size) {
  return (size + kStreamBlock - 1) / kStreamBlock;
}
// Returns the number of elements of a block of a range.
GPUPS_ANY_FN constexpr std::uint32_t block_width(std::uint64_t size, std::size_t block) {
  std::uint64_t const left = size - block * kStreamBlock;
  return static_cast<std::uint32_t>(left < kStreamBlock ? left : kStreamBlock);
}
// Returns the number of bytes before the values, a multiple of 8.
GPUPS_ANY_FN constexpr std::size_t stream_head_bytes(std::size_t blocks) {
  return sizeof(StreamHeader) + (blocks + 1) / 2 * 8;
}

// Returns the bytes of `count` values of a block. The values of a block begin at a multiple of the size of one value.
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
// Returns the bytes of the positions of a block.
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
