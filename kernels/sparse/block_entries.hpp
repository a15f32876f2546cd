// SPDX-License-Identifier: Apache-2.0
// The elements of a block that are not zero, as lists, and how they are found in arrays with the pieces of a block. On
// the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "gpups/array.hpp"
#include "kernels/base/highway.hpp"
#include "kernels/sparse/bitmap_positions.hpp"
#include "kernels/sparse/listed_positions.hpp"

namespace gpups::kernels {

// The positions of a block's elements, in ascending order.
struct BlockPositions {
  std::size_t count;
  std::uint16_t const* positions;  // (count), 64 more may be read; null if are_many()
  std::uint64_t const* bits;       // the positions as a bitmap of the block; may be null if `positions` is not
};
// Positions and values. T is float, or std::int64_t for units.
template <class T>
struct BlockEntries : BlockPositions {
  T const* values;  // (count)
};

// Calls f(i, position) for each entry, in order.
template <class F>
void each_position(BlockPositions const& entries, F f) {
  if (entries.positions != nullptr) {
    for (std::size_t i = 0; i < entries.count; ++i) f(i, std::uint32_t{entries.positions[i]});
    return;
  }
  std::size_t i = 0;
  for (std::uint32_t w = 0; i < entries.count; ++w) {
    for (std::uint64_t word = entries.bits[w]; word != 0; word &= word - 1, ++i) {
      f(i, 64 * w + static_cast<std::uint32_t>(std::countr_zero(word)));
    }
  }
}

// More than one element in eight: then a bitmap takes fewer bytes and less time than a list.
constexpr bool are_many(std::size_t count, std::uint32_t width) { return count * 8 > width; }

// Marks the elements of x that are not zero. REQUIRES: bits has (width + 63) / 64 words.
template <class T>
void mark_nonzero(T const* x, std::uint32_t width, std::uint64_t* bits) {
  std::uint32_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    hn::CappedTag<float, 16> const d;
    for (; i + 64 <= width; i += 64) {
      // NaN is not zero.
      bits[i / 64] = mask_word(d, [&](std::size_t k) { return hn::Not(hn::Eq(hn::LoadU(d, x + i + k), hn::Zero(d))); });
    }
  }
  for (; i < width; i += 64) {
    std::uint32_t const last = std::min(i + 64, width);
    std::uint64_t word = 0;
    for (std::uint32_t j = i; j < last; ++j) word |= std::uint64_t{x[j] != 0} << (j - i);
    bits[i / 64] = word;
  }
}

// Copies the marked elements of x next to each other. `to` has room for 16 more.
template <class T>
void compress(T const* x, std::uint64_t const* bits, std::size_t words, T* to) {
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t word = bits[w];
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == sizeof(float)) {
      for (float const* from = x + 64 * w; word != 0; word >>= 16, from += 16) {
        auto const set = static_cast<__mmask16>(word);
        _mm512_storeu_ps(to, _mm512_maskz_compress_ps(set, _mm512_maskz_loadu_ps(set, from)));
        to += std::popcount(static_cast<unsigned>(set));
      }
      continue;
    }
#endif
    for (; word != 0; word &= word - 1) *to++ = x[64 * w + static_cast<unsigned>(std::countr_zero(word))];
  }
}

// Memory in which the entries of one block are collected piece by piece. Pieces begin at multiples of 64 elements.
template <class T>
struct EntryMemory {
  Array<std::uint64_t> bits{Device::host(), kBlockWords};
  Array<std::uint16_t> positions{Device::host(), kPositionRoom};
  Array<T> values{Device::host(), kStreamBlock + 64};
  std::size_t count = 0, zeros = 0;  // the number of values so far, and how many of them are 0

  // Begins a new block.
  void begin() {
    std::memset(bits.data(), 0, bits.bytes());
    count = zeros = 0;
  }

  // For sparse pieces: collects the elements of x, which are the positions [first, last), that `bits` marks, and sets
  // them to 0. `in_most_words`: most words of the bitmap have marked elements; this changes only the speed.
  void take_few(T* x, std::uint32_t first, std::uint32_t last, bool in_most_words) {
    std::size_t const begin = count;
    count += positions_of(bits.data(), first / 64, (last + 63) / 64, positions.data() + begin, in_most_words);
    std::uint16_t const* const from = positions.data();
    T* const to = values.data();
    for (std::size_t i = begin; i < count; ++i) {
      T& sum = x[from[i] - first];
      to[i] = sum;
      sum = 0;
    }
    for (std::size_t i = begin; i < count; ++i) zeros += to[i] == 0 ? 1 : 0;
  }
  // Returns everything that take_few() collected, except zeros.
  BlockEntries<T> few() {
    if (zeros == 0) return {{count, positions.data(), bits.data()}, values.data()};
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      positions[left] = positions[i];
      values[left] = values[i];
      left += values[i] != 0 ? 1 : 0;
    }
    return {{left, positions.data(), nullptr}, values.data()};
  }

  // Finds the elements of a whole block that are not 0, without collecting values.
  BlockPositions find_positions(T const* x, std::uint32_t width) {
    std::size_t const words = (width + 63) / 64;
    mark_nonzero(x, width, bits.data());
    std::size_t const found = bits_set(bits.data(), words);
    if (are_many(found, width)) return {found, nullptr, bits.data()};
    positions_of(bits.data(), 0, words, positions.data());
    return {found, positions.data(), bits.data()};
  }

  // For dense pieces: collects the elements of x, which are the positions [first, last), that are not 0.
  void find_many(T const* x, std::uint32_t first, std::uint32_t last) {
    std::uint64_t* const marks = bits.data() + first / 64;
    std::size_t const words = (last - first + 63) / 64;
    mark_nonzero(x, last - first, marks);
    compress(x, marks, words, values.data() + count);
    count += bits_set(marks, words);
  }
  // Returns everything that find_many() collected.
  BlockEntries<T> many(std::uint32_t width) {
    if (are_many(count, width)) return {{count, nullptr, bits.data()}, values.data()};
    positions_of(bits.data(), 0, kBlockWords, positions.data());
    return {{count, positions.data(), bits.data()}, values.data()};
  }
};

}  // namespace gpups::kernels
