// SPDX-License-Identifier: Apache-2.0
// The random bits for rounding new values of a row: 16 for each column, a pure function of seed, key, step and column.
// Eight columns share four words of philox(): column j has half j % 2 of word j % 8 / 2 of block j / 8.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpups/types.hpp"
#include "kernels/base/function.hpp"
#include "kernels/base/philox.hpp"
#ifndef __CUDACC__
#include "kernels/base/philox_lanes.hpp"
#endif

namespace gpups::kernels {

// What the random bits of a row depend on, except for the column.
struct RoundingDraw {
  PhiloxKey seed;
  std::uint64_t key;   // of the row
  std::uint32_t step;  // low half of the number of the step

  GPUPS_FN PhiloxCounter counter(std::size_t block) const {
    return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(block),
             step}};
  }
};

#ifdef __CUDACC__
// The bits of four columns.
struct FourBits {
  std::uint32_t of[4];
};
// Returns the bits of the columns j .. j + 3. REQUIRES: j % 4 == 0.
__device__ inline FourBits rounding_bits(RoundingDraw const& draw, std::size_t j) {
  Philox4 const r = philox(draw.seed, draw.counter(j / 8));
  std::uint32_t const first = j % 8 == 0 ? r.word[0] : r.word[2], second = j % 8 == 0 ? r.word[1] : r.word[3];
  return {{first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16}};
}
#else
// The bits of a whole row. A host thread computes them for many columns at a time.
class RoundingBits {
 public:
  explicit RoundingBits(RoundingDraw const& draw) : draw_(draw) {}

  // Returns the bits of the columns from j on, up to a multiple of 16. REQUIRES: j ascends from 0 in steps that divide
  // 16.
  std::uint16_t const* from(std::size_t j) {
    if (j % kColumns == 0) draw(j);
    return bits_ + j % kColumns;
  }

 private:
  static constexpr std::size_t kColumns = 64;

  // Computes the bits of the columns j .. j + kColumns - 1.
  [[gnu::noinline]] void draw(std::size_t j) {
    static_assert(std::endian::native == std::endian::little, "the lower half of a word comes first");
    for (std::size_t column = 0; column < kColumns; column += 8 * kPhiloxLanes) {
      PhiloxCounter const first = draw_.counter((j + column) / 8);
      PhiloxVector a = PhiloxVector{} + first.word[0], b = PhiloxVector{} + first.word[1];
      PhiloxVector c = philox_lane_numbers() + first.word[2], d = PhiloxVector{} + first.word[3];
      philox_lanes(draw_.seed, a, b, c, d);
      PhiloxVector const low = (a & 0xFFFFFFFF) | b << 32, high = (c & 0xFFFFFFFF) | d << 32;
      PhiloxVector const front = philox_pairs(low, high, 0), back = philox_pairs(low, high, kPhiloxLanes / 2);
      std::memcpy(bits_ + column, &front, sizeof front);
      std::memcpy(bits_ + column + 4 * kPhiloxLanes, &back, sizeof back);
    }
  }

  RoundingDraw draw_;
  alignas(64) std::uint16_t bits_[kColumns];
};
#endif

}  // namespace gpups::kernels
