// SPDX-License-Identifier: Apache-2.0
// Converts the indices of a list to the positions of a stream's blocks, and checks them: each index is read once. On
// the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/sparse/block_entries.hpp"

namespace gpups::kernels {

// The part of a list that belongs to a block.
struct BlockIndices {
  std::uint32_t const* indices;
  std::size_t count;
  std::uint32_t base, width;  // an index is base + position, where position < width
};

// Calls f(first, last) for pieces of the list that stay in the first-level cache, after it has checked that their
// indices are ascending and in the block. Returns false at the first piece that is not.
template <class F>
bool each_checked(BlockIndices const& from, F f) {
  constexpr std::size_t kPiece = 512;
  constexpr std::size_t kAhead = 2048;  // prefetch distance; reads of a block become about a quarter faster
  std::uint32_t const* const indices = from.indices;
  if (from.count > 0 && indices[0] < from.base) return false;
  for (std::size_t first = 0; first < from.count; first += kPiece) {
    std::size_t const last = std::min(first + kPiece, from.count);
    for (std::size_t i = first; i < last; i += 16) __builtin_prefetch(indices + i + kAhead, 0, 2);
    std::uint32_t wrong = indices[last - 1] - from.base >= from.width ? 1 : 0;
    for (std::size_t i = first == 0 ? 1 : first; i < last; ++i) wrong |= indices[i] <= indices[i - 1] ? 1U : 0U;
    if (wrong != 0) return false;
    f(first, last);
  }
  return true;
}

// Returns a word with bit from[k] - from[0] set for each of n ascending numbers, n = 8 or 16. REQUIRES: all differences
// are below 64.
template <unsigned n>
std::uint64_t group_bits(std::uint32_t const* from) {
#if defined(__AVX512F__)
  constexpr __mmask8 kAll = 0xFF;  // intrinsics without a mask make g++ 12 warn
  __m256i const lowest = _mm256_set1_epi32(static_cast<int>(from[0]));
  __m512i eight = _mm512_setzero_si512();
  for (unsigned k = 0; k < n; k += 8) {
    __m256i const here = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + k));
    __m512i const shift = _mm512_maskz_cvtepu32_epi64(kAll, _mm256_sub_epi32(here, lowest));
    eight = _mm512_or_si512(eight, _mm512_maskz_sllv_epi64(kAll, _mm512_set1_epi64(1), shift));
  }
  __m256i const four =
      _mm256_or_si256(_mm512_maskz_extracti64x4_epi64(0xF, eight, 0), _mm512_maskz_extracti64x4_epi64(0xF, eight, 1));
  __m128i const two = _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(two, _mm_unpackhi_epi64(two, two))));
#else
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < n; ++k) bits |= std::uint64_t{1} << (from[k] - from[0]);
  return bits;
#endif
}

// Marks the ascending positions from[i] - base in a bitmap that has one word more than they need. Handles groups of
// kGroup positions, most of which are within 64 positions. Single bits would be slower, since each would wait for the
// one before it.
template <unsigned kGroup>
void mark_groups(std::uint32_t const* from, std::size_t count, std::uint32_t base, std::uint64_t* bits) {
  auto const mark = [&](std::size_t i) { bits[(from[i] - base) / 64] |= std::uint64_t{1} << (from[i] - base) % 64; };
  std::size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    if (from[i + kGroup - 1] - from[i] >= 64) {
      for (std::size_t k = 0; k < kGroup; ++k) mark(i + k);
      continue;
    }
    std::uint64_t const group = group_bits<kGroup>(from + i);
    std::uint32_t const first = from[i] - base;
    bits[first / 64] |= group << first % 64;
    bits[first / 64 + 1] |= group >> 1 >> (63 - first % 64);
  }
  for (; i < count; ++i) mark(i);
}

// Finds the positions of a block's elements in a list, with memory that is reused for the next block.
class IndexedPositions {
 public:
  // Returns nothing if the indices are not ascending, or not all in the block. The result is valid until the next call.
  std::optional<BlockPositions> find(BlockIndices const& from) {
    if (are_many(from.count, from.width)) {
      if (!mark(from)) return {};
      return BlockPositions{from.count, nullptr, bits_.data()};
    }
    std::uint16_t* const to = positions_.data();
    bool const ascending = each_checked(from, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) to[i] = static_cast<std::uint16_t>(from.indices[i] - from.base);
    });
    if (!ascending) return {};
    return BlockPositions{from.count, to, nullptr};
  }

 private:
  bool mark(BlockIndices const& from) {
    std::memset(bits_.data(), 0, bits_.bytes());
    bool const crowded = from.count * 8 > std::size_t{from.width} * 3;
    auto const mark_all = crowded ? mark_groups<16> : mark_groups<8>;
    return each_checked(from, [&](std::size_t first, std::size_t last) {
      mark_all(from.indices + first, last - first, from.base, bits_.data());
    });
  }

  Array<std::uint64_t> bits_{Device::host(), kBlockWords + 1};
  Array<std::uint16_t> positions_{Device::host(), kStreamBlock / 8 + 64};
};

}  // namespace gpups::kernels
