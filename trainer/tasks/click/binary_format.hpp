// SPDX-License-Identifier: Apache-2.0
// The binary file of click data: header and layout, blocks of kSampleBlock samples, and an index of the blocks.
//
//   FileHeader | layout_text() | 0 .. 63 zeros | block | zeros | ... | names | zeros | BlockEntry of each block
//
// Numbers are little-endian. Blocks, names and the index begin at multiples of 64 bytes. block.hpp describes a block.
// The names are those of the columns in the heading of the text: of the label, the numbers and the categories, with a
// line end between two of them. A file of text without a heading has none, and version 1 of the format.
#pragma once

#include <bit>
#include <cstdint>

namespace gpups::trainer {

static_assert(std::endian::native == std::endian::little,
              "numbers in files are little-endian, and are read without conversion");

constexpr char kMagic[8] = {'g', 'p', 'u', 'c', 'l', 'i', 'c', 'k'};
constexpr std::uint32_t kVersionWithoutNames = 1, kVersionWithNames = 2;
constexpr std::uint64_t kAlignment = 64;

// The first bytes of a file.
struct FileHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t layout_bytes = 0;
  std::uint32_t block_samples = 0;  // kSampleBlock
  std::uint32_t names_bytes = 0;    // 0: no names
  std::uint64_t samples = 0;        // all blocks but the last are full
  std::uint64_t index_begin = 0;    // in the file; the index extends to the end of the file
  std::uint64_t index_xxh3 = 0;
  std::uint64_t xxh3 = 0;  // of the fields above, the layout and the names
};
static_assert(sizeof(FileHeader) == 56);

// An element of the index: where a block is, and its checksum.
struct BlockEntry {
  std::uint64_t begin = 0;  // in the file
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};
static_assert(sizeof(BlockEntry) == 24);

// Rounds up to a multiple of kAlignment.
constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace gpups::trainer
