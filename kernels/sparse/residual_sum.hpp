// SPDX-License-Identifier: Apache-2.0
// The input of a sparsification, on the host: values, or their sum with a residual; and the search for the large
// elements of a block of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/base/highway.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Finds the few large elements among many floats, on the host, without a branch for each. This is the inner loop of
// sparsification.

// The number of floats that are searched at a time, a multiple of 64. These floats and the list of the large ones stay
// in a core's caches.
inline constexpr std::size_t kThresholdBlock = 8192;

// Writes first + i for each bit i that is set in the word, ascending, and returns their number. `to` has room for 12
// more.
inline std::size_t list_bits(std::uint64_t word, std::uint32_t first, std::uint32_t* to) {
  auto const count = static_cast<std::size_t>(std::popcount(word));
  // Takes the lowest bit. The last bit stands for the bits of an empty word: countr_zero() has a branch for 0.
  auto const take = [&] {
    *to++ = first + static_cast<std::uint32_t>(std::countr_zero(word | std::uint64_t{1} << 63));
    word &= word - 1;
  };
  // A loop until the word is empty would end with a branch that the processor cannot predict. So 4 bits are taken in
  // any case, which are enough for most words if few elements are large, and then 8, enough if a tenth is.
  for (int k = 0; k < 4; ++k) take();
  for (int k = 0; k < 8 && count > 4; ++k) take();
  while (word != 0) take();
  return count;
}

// Lists the positions in x, ascending, and the values of the floats whose magnitude has bits >= least, and returns
// their number. `places` and `values` have room for count + 16. REQUIRES: count <= kThresholdBlock, 0 < least <= 2^31.
inline std::size_t find_above_threshold(float const* x, std::size_t count, std::uint32_t least, std::uint32_t* places,
                                        float* values) {
  constexpr std::size_t kAhead = 512;  // floats; hardware prefetch stops at page boundaries
  hn::CappedTag<std::int32_t, 16> const d;
  auto const magnitude = hn::Set(d, 0x7FFFFFFF), below = hn::Set(d, static_cast<std::int32_t>(least - 1));
  std::size_t found = 0, i = 0;
  for (; i + 64 <= count; i += 64) {
    for (std::size_t k = 0; k < 64; k += 16) __builtin_prefetch(x + i + k + kAhead);
    auto const* const from = reinterpret_cast<std::int32_t const*>(x + i);
    std::uint64_t const large =
        mask_word(d, [&](std::size_t k) { return hn::Gt(hn::And(hn::LoadU(d, from + k), magnitude), below); });
    found += list_bits(large, static_cast<std::uint32_t>(i), places + found);
  }
  for (; i < count; ++i) {
    places[found] = static_cast<std::uint32_t>(i);
    found += magnitude_bits(x[i]) >= least ? 1 : 0;
  }
  for (std::size_t h = 0; h < found; ++h) values[h] = x[places[h]];
  return found;
}

// Values, or their sum with a residual: the first pass over all blocks writes the sum to the residual. block() may be
// called for different blocks by several threads at the same time.
class ResidualSum {
 public:
  ResidualSum(View<float const> values, View<float> residual)  // residual may be empty
      : values_(values.data()), residual_(residual.empty() ? nullptr : residual.data()), size_(values.size()) {}

  std::size_t size() const { return size_; }
  std::size_t blocks() const { return (size_ + kThresholdBlock - 1) / kThresholdBlock; }
  // Returns an element of the sum, before or after the first pass.
  float at(std::size_t i) const {
    if (residual_ == nullptr) return values_[i];
    return added_ ? residual_[i] : values_[i] + residual_[i];
  }
  // Prefetches elements for at().
  void prefetch(std::size_t first, std::size_t count) const {
    for (std::size_t i : {first, first + count - 1}) {
      __builtin_prefetch(values_ + i);
      if (residual_ != nullptr) __builtin_prefetch(residual_ + i);
    }
  }
  // Returns the elements of a block. In the first pass, adds its values to the residual; call it once for each block
  // then.
  View<float const> block(std::size_t b) const {
    std::size_t const first = b * kThresholdBlock, count = std::min(kThresholdBlock, size_ - first);
    if (residual_ == nullptr) return {values_ + first, count};
    float* const to = residual_ + first;
    float const* const from = values_ + first;
    if (!added_) {
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
    }
    return {to, count};
  }
  // Ends the first pass: block() has been called for all blocks.
  void set_added() { added_ = true; }
  // Does the whole first pass.
  void add(HostExec ex) {
    ex.arena->blocks(blocks(), [&](std::size_t b) { block(b); });
    set_added();
  }
  // Changes an element of the residual, if there is a residual.
  void set(std::size_t i, float x) const {
    if (residual_ != nullptr) residual_[i] = x;
  }
  // The same if `if_so`, without a branch.
  void set_if(bool if_so, std::size_t i, float x) const {
    if (residual_ == nullptr) return;
    float nowhere;
    *(if_so ? residual_ + i : &nowhere) = x;
  }

 private:
  float const* values_;
  float* residual_;
  std::size_t size_;
  bool added_ = false;
};

}  // namespace gpups::kernels
