// SPDX-License-Identifier: Apache-2.0
// Adds blocks of streams up in an array that stays in a core's caches: nothing is merged, and what is not touched is
// not read. The order of the sum of an element is that of the calls. On the host.
#pragma once

#include "kernels/wire/block_entries.hpp"
#include "kernels/wire/block_values.hpp"

namespace gpups::kernels {

// Adds one block of a stream to an array of the block.
template <class T>
class BlockAdder {
 public:
  // sums[place] += value, and marks the places in `marks`, unless it is null. False, and nothing is added, where the
  // block's bytes are not what a writer writes.
  bool add(ValueForm form, StreamBlock const& block, T* sums, std::uint64_t* marks) {
    BlockWord const word = block.word;
    if (word.count == 0) return true;
    switch (word.kind) {
      case PlaceKind::kDense:
        return read(form, block), add_dense(block, sums, marks), true;
      case PlaceKind::kBitmap:
        if (!read_bitmap(block.places, word.count, block.width, bits_.data())) return false;
        return read(form, block), add_marked(block, sums, marks), true;
      case PlaceKind::kOffsets:
        if (!read_offsets(block.places, word.count, block.width, places_.data())) return false;
        break;
      case PlaceKind::kGaps:
        std::size_t const bytes = std::size_t{word.count} + word.skips;
        if (!read_gaps(block.places, bytes, word.count, block.width, places_.data())) return false;
    }
    read(form, block);
    if (marks == nullptr) {
      for (std::size_t i = 0; i < word.count; ++i) sums[places_[i]] += read_[i];
    } else {
      for (std::size_t i = 0; i < word.count; ++i) {
        std::uint16_t const place = places_[i];
        sums[place] += read_[i];
        marks[place / 64] |= std::uint64_t{1} << place % 64;
      }
    }
    return true;
  }

 private:
  void read(ValueForm form, StreamBlock const& block) {
    values_.read(form, block.values, block.word.count, block.word.width_log2, read_.data());
  }
  void add_dense(StreamBlock const& block, T* sums, std::uint64_t* marks) const {
    for (std::uint32_t i = 0; i < block.width; ++i) sums[i] += read_[i];
    for (std::uint32_t i = 0; marks != nullptr && i < block.width; i += 64) {
      std::uint32_t const left = block.width - i;
      marks[i / 64] |= left < 64 ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
    }
  }
  void add_marked(StreamBlock const& block, T* sums, std::uint64_t* marks) const {
    T const* from = read_.data();
    for (std::size_t w = 0; w < (block.width + 63) / 64; ++w) {
      std::uint64_t word = bits_[w];
      if (marks != nullptr) marks[w] |= word;
#if defined(__AVX512F__)
      if constexpr (sizeof(T) == sizeof(float)) {
        for (T* to = sums + 64 * w; word != 0; word >>= 16, to += 16) {
          auto const set = static_cast<__mmask16>(word);
          __m512 const sum = _mm512_add_ps(_mm512_maskz_loadu_ps(set, to), _mm512_maskz_expandloadu_ps(set, from));
          _mm512_mask_storeu_ps(to, set, sum);
          from += std::popcount(static_cast<unsigned>(set));
        }
        continue;
      }
#endif
      for (; word != 0; word &= word - 1) sums[64 * w + static_cast<unsigned>(std::countr_zero(word))] += *from++;
    }
  }

  BlockValues<T> values_;
  Array<std::uint64_t> bits_{Device::host(), kBlockWords};
  Array<std::uint16_t> places_{Device::host(), kPlaceRoom};
  Array<T> read_{Device::host(), kStreamBlock};
};

// A block's sums, of which only what was added to is looked at.
template <class T>
class BlockSum {
 public:
  BlockSum() {
    std::memset(sums_.data(), 0, sums_.bytes());
    std::memset(memory_.bits.data(), 0, memory_.bits.bytes());
  }

  bool add(ValueForm form, StreamBlock const& block) {
    return adder_.add(form, block, sums_.data(), memory_.bits.data());
  }

  // The sums that are not zero, until the next call of add(). Ends the block: the next sum begins at zero.
  BlockEntries<T> take(std::uint32_t width) { return memory_.take_marked(sums_.data(), width); }
  // What take() gave has been used.
  void clear() { std::memset(memory_.bits.data(), 0, memory_.bits.bytes()); }

 private:
  BlockAdder<T> adder_;
  Array<T> sums_{Device::host(), kStreamBlock};
  EntryMemory<T> memory_;
};

}  // namespace gpups::kernels
