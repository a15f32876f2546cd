// SPDX-License-Identifier: Apache-2.0
// A block of a stream that is decoded, checked, and added to arrays with pieces of the block. On the host.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/base/highway.hpp"
#include "kernels/sparse/block_entries.hpp"
#include "kernels/sparse/block_values.hpp"
#include "kernels/sparse/stream_view.hpp"
#include "kernels/sparse/unit_values.hpp"
#if HWY_TARGET <= HWY_AVX3
#define GPUPS_EXPAND_LOAD 1
#include <immintrin.h>
#endif

namespace gpups::kernels {

// Moves consecutive floats to the marked lanes of vectors, on the host.

#ifdef GPUPS_EXPAND_LOAD
using ExpandedFloats = hn::CappedTag<float, 16>;
#else
using ExpandedFloats = hn::CappedTag<float, 8>;
#endif
inline constexpr std::size_t kExpandedLanes = hn::MaxLanes(ExpandedFloats());

#ifndef GPUPS_EXPAND_LOAD
// The float that each lane takes, for each pattern of marked lanes.
inline constexpr auto kExpandFrom = [] {
  struct {
    std::uint8_t at[1U << kExpandedLanes][kExpandedLanes];
  } table{};
  for (unsigned bits = 0; bits < (1U << kExpandedLanes); ++bits) {
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < kExpandedLanes; ++lane) {
      table.at[bits][lane] = next;
      next = static_cast<std::uint8_t>((next + (bits >> lane & 1U)) % kExpandedLanes);
    }
  }
  return table;
}();
#endif

// Calls take(k, x, marked) for k = 0, kExpandedLanes, ... below 64: `marked` is the mask of the lanes that the bits of
// the word from k on mark, and x has the next floats in these lanes, in order. Returns the first float behind them.
// REQUIRES: 64 floats can be read at `from`.
template <class F>
[[gnu::always_inline]] inline float const* expand_word(std::uint64_t word, float const* from, F take) {
  ExpandedFloats const d;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < 64; k += kExpandedLanes) {
    std::uint64_t const bits = word >> k;
    auto const marked = hn::LoadMaskBits(d, reinterpret_cast<std::uint8_t const*>(&bits));
    float const* const next = from + std::popcount(word & ((std::uint64_t{1} << k) - 1));
#ifdef GPUPS_EXPAND_LOAD
    hn::Vec<ExpandedFloats> const x{_mm512_maskz_expandloadu_ps(static_cast<__mmask16>(bits), next)};
#else
    hn::Rebind<std::uint8_t, ExpandedFloats> const bytes;
    auto const lanes = hn::LoadU(bytes, kExpandFrom.at[bits & ((1U << kExpandedLanes) - 1)]);
    auto const places = hn::PromoteTo(hn::RebindToSigned<ExpandedFloats>(), lanes);
    auto const x = hn::TableLookupLanes(hn::LoadU(d, next), hn::IndicesFromVec(d, places));
#endif
    take(k, x, marked);
  }
  return from + std::popcount(word);
}

// Decodes one block at a time, with memory that is reused for the next block.
template <class T>
class DecodedBlock {
 public:
  // Decodes a block. Returns false if its bytes are not valid; the block then has no elements.
  bool read(ValueForm form, StreamBlock const& block) {
    kind_ = block.word.kind;
    count_ = block.word.count;
    next_ = 0;
    if (count_ == 0) return true;
    if (!read_positions(block)) {
      count_ = 0;
      return false;
    }
    read_values(form, block);
    return true;
  }

  // Sets sums[position - first] = value, and all other elements to 0; otherwise as add().
  void set(T* sums, std::uint32_t first, std::uint32_t last) {
    if (next_ < count_ && kind_ == PositionEncoding::kBitmap) return set_marked(sums, first, last);
    if (next_ < count_ && kind_ == PositionEncoding::kDense) return set_dense(sums, last - first);
    std::memset(sums, 0, (last - first) * sizeof(T));
    add(sums, nullptr, first, last);
  }

  // sums[position - first] += value for the positions in [first, last), which are multiples of 64 or the end of the
  // block. Sets their bits in `marks`, a bitmap of the block, unless it is null. REQUIRES: consecutive calls cover the
  // block from position 0 on without gaps.
  void add(T* sums, std::uint64_t* marks, std::uint32_t first, std::uint32_t last) {
    if (next_ == count_) return;
    switch (kind_) {
      case PositionEncoding::kDense:
        return add_dense(sums, marks, first, last);
      case PositionEncoding::kBitmap:
        return add_marked(sums, marks, first, last);
      case PositionEncoding::kOffsets:
      case PositionEncoding::kGaps:
        add_listed(sums, marks, first, last);
    }
  }

 private:
  bool read_positions(StreamBlock const& block) {
    BlockWord const word = block.word;
    switch (word.kind) {
      case PositionEncoding::kDense:
        return true;
      case PositionEncoding::kBitmap:
        return read_bitmap(block.positions, word.count, block.width, bits_.data());
      case PositionEncoding::kOffsets:
        return read_offsets(block.positions, word.count, block.width, positions_.data());
      case PositionEncoding::kGaps:
        break;
    }
    return read_gaps(block.positions, position_bytes(word, block.width), word.count, block.width, positions_.data());
  }

  // Aligned floats are used in place, without a copy.
  void read_values(ValueForm form, StreamBlock const& block) {
    bool const are_aligned = reinterpret_cast<std::uintptr_t>(block.values) % alignof(T) == 0;
    if (std::is_same_v<T, float> && form.values == StreamValues::kFloat && are_aligned) {
      values_ = reinterpret_cast<T const*>(block.values);
      return;
    }
    if (read_.size() == 0) read_ = Array<T>(Device::host(), kStreamBlock);
    reader_.read(form, block.values, count_, block.word.width_log2, read_.data());
    values_ = read_.data();
  }

  // Adding zero turns -0 into 0, as in a sum.
  void set_dense(T* sums, std::uint32_t size) {
    T const* const from = values_ + next_;
    for (std::uint32_t i = 0; i < size; ++i) sums[i] = T{0} + from[i];
    next_ += size;
  }

  void set_marked(T* sums, std::uint32_t first, std::uint32_t last) {
    T const* from = values_ + next_;
    std::uint32_t i = first;
    if constexpr (std::is_same_v<T, float>) {
      for (; i + 64 <= last && can_expand(from); i += 64, sums += 64) {
        ExpandedFloats const d;
        from = expand_word(bits_[i / 64], from, [&](std::size_t k, auto x, auto marked) {
          hn::StoreU(hn::Add(hn::IfThenElseZero(marked, x), hn::Zero(d)), d, sums + k);
        });
      }
    }
    std::memset(sums, 0, (last - i) * sizeof(T));
    next_ = static_cast<std::uint32_t>(from - values_);
    add_marked(sums, nullptr, i, last);
  }

  // Returns whether a word of the bitmap can be expanded with the values from `from` on.
  bool can_expand(float const* from) const { return values_ + count_ - from >= 64; }

  void add_dense(T* sums, std::uint64_t* marks, std::uint32_t first, std::uint32_t last) {
    T const* const from = values_ + next_;
    for (std::uint32_t i = 0; i < last - first; ++i) sums[i] = plus(sums[i], from[i]);
    for (std::uint32_t i = first; marks != nullptr && i < last; i += 64) {
      marks[i / 64] |= last - i < 64 ? (std::uint64_t{1} << (last - i)) - 1 : ~std::uint64_t{0};
    }
    next_ = last;
  }

  void add_marked(T* sums, std::uint64_t* marks, std::uint32_t first, std::uint32_t last) {
    T const* from = values_ + next_;
    for (std::uint32_t i = first; i < last; i += 64, sums += 64) {
      std::uint64_t word = bits_[i / 64];
      if (marks != nullptr) marks[i / 64] |= word;
      if constexpr (std::is_same_v<T, float>) {
        if (i + 64 <= last && can_expand(from)) {
          ExpandedFloats const d;
          from = expand_word(word, from, [&](std::size_t k, auto x, auto marked) {
            auto const before = hn::LoadU(d, sums + k);
            hn::StoreU(hn::IfThenElse(marked, hn::Add(before, x), before), d, sums + k);
          });
          continue;
        }
      }
      for (; word != 0; word &= word - 1) {
        T& sum = sums[std::countr_zero(word)];
        sum = plus(sum, *from++);
      }
    }
    next_ = static_cast<std::uint32_t>(from - values_);
  }

  void add_listed(T* sums, std::uint64_t* marks, std::uint32_t first, std::uint32_t last) {
    std::uint16_t const* const positions = positions_.data();
    T const* const values = values_;
    std::uint32_t i = next_;
    if (marks == nullptr) {
      for (; i < count_ && positions[i] < last; ++i) {
        T& sum = sums[positions[i] - first];
        sum = plus(sum, values[i]);
      }
    } else {
      for (; i < count_ && positions[i] < last; ++i) {
        std::uint32_t const position = positions[i];
        sums[position - first] = plus(sums[position - first], values[i]);
        marks[position / 64] |= std::uint64_t{1} << position % 64;
      }
    }
    next_ = i;
  }

  PositionEncoding kind_{};
  std::uint32_t count_ = 0, next_ = 0;  // the number of elements, and how many of them have been added
  T const* values_ = nullptr;
  BlockValues<T> reader_;
  Array<std::uint64_t> bits_{Device::host(), kBlockWords};
  Array<std::uint16_t> positions_{Device::host(), kPositionRoom};
  Array<T> read_;  // values that needed decoding
};

}  // namespace gpups::kernels
