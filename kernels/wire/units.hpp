// SPDX-License-Identifier: Apache-2.0
// Between codes of the wire and whole units of a grid, exactly: what a code stands for is a whole number of units.
#pragma once

#include <cstdint>

#include "kernels/wire/code.hpp"

namespace gpups::kernels {

// Magnitudes up to this can be encoded.
inline constexpr std::int64_t kUnitsMost = std::int64_t{1} << 62;
inline constexpr std::uint32_t kOverflown = 0xFFFFFFFF;

// The sum of two int64. Sets bit 63 of `bad` where it is not within kUnitsMost of 0: words only, which become vectors.
GPUPS_FN inline std::int64_t add_units(std::int64_t a, std::int64_t b, std::uint64_t& bad) {
  auto const x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b), sum = x + y;
  std::uint64_t const magnitude = sum >> 63 != 0 ? 0 - sum : sum;
  bad |= ((sum ^ x) & (sum ^ y)) | (static_cast<std::uint64_t>(kUnitsMost) - magnitude);
  return static_cast<std::int64_t>(sum);
}

// Bits of a float that is at least |units|, and at most 2^-22 of it larger.
GPUPS_FN inline std::uint32_t bits_above(std::int64_t units) {
  auto const x = static_cast<float>(units < 0 ? -units : units);
  return std::bit_cast<std::uint32_t>(x) + (x < 0x1p24F ? 0 : 1);
}

// What a row's codes are multiplied by: units, or for formats without a scale 2^-grid_log2, the units of 1.
template <Format F>
struct UnitScale {
  double unit, inverse;

  // For a row whose largest magnitude is at most the float with these bits.
  GPUPS_FN static UnitScale of(std::uint32_t most_bits, int grid_log2) {
    if constexpr (has_scale(F)) {
      bool const is_zero = most_bits < std::bit_cast<std::uint32_t>(1.0F);
      // A whole number; above 2^16 the 16 bits of a scale see to that.
      float const scale = is_zero ? 1 : __builtin_ceilf(Code<F>::scale(most_bits));
      return {scale, 1.0 / static_cast<double>(scale)};
    } else {
      return {__builtin_ldexp(1.0, -grid_log2), __builtin_ldexp(1.0, grid_log2)};
    }
  }
  // For a row that was sent with this scale.
  GPUPS_FN static UnitScale received(float scale, int grid_log2) {
    if constexpr (has_scale(F)) return {scale, 0};
    return of(0, grid_log2);
  }
  GPUPS_FN float sent() const { return static_cast<float>(unit); }

  GPUPS_FN float scaled(std::int64_t units) const { return static_cast<float>(static_cast<double>(units) * inverse); }
  // A product of 31 bits at most. What no sender means, such as codes that are not numbers, counts nothing.
  GPUPS_FN std::int64_t units(float decoded) const {
    double const whole = static_cast<double>(decoded) * unit;
    double const meant = __builtin_fabs(whole) < 0x1p63 ? whole : 0;
    return static_cast<std::int64_t>(meant);
  }
};

}  // namespace gpups::kernels
