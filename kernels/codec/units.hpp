// SPDX-License-Identifier: Apache-2.0
// Exact conversion between codes and whole units of a grid: the value of a code is a whole number of units.
#pragma once

#include <cstdint>

#include "kernels/codec/code.hpp"

namespace gpups::kernels {

// The largest magnitude that can be encoded.
inline constexpr std::int64_t kUnitsMost = std::int64_t{1} << 62;
inline constexpr std::uint32_t kOverflown = 0xFFFFFFFF;

// Returns the sum of two int64. Sets bit 63 of `bad` if its magnitude exceeds kUnitsMost. Uses only integer operations
// that compilers vectorize.
GPUPS_FN inline std::int64_t add_units(std::int64_t a, std::int64_t b, std::uint64_t& bad) {
  auto const x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b), sum = x + y;
  std::uint64_t const magnitude = sum >> 63 != 0 ? 0 - sum : sum;
  bad |= ((sum ^ x) & (sum ^ y)) | (static_cast<std::uint64_t>(kUnitsMost) - magnitude);
  return static_cast<std::int64_t>(sum);
}

// Returns the bits of a float that is at least |units|, and larger by at most a factor of 1 + 2^-22.
GPUPS_FN inline std::uint32_t bits_above(std::int64_t units) {
  auto const x = static_cast<float>(units < 0 ? -units : units);
  return std::bit_cast<std::uint32_t>(x) + (x < 0x1p24F ? 0 : 1);
}

// The factor of a row's codes, in units; for formats without a scale it is 2^-grid_log2, the units of 1.
template <Format F>
struct UnitScale {
  double unit, inverse;

  // Returns the scale for a row whose largest magnitude is at most the float with these bits.
  GPUPS_FN static UnitScale of(std::uint32_t most_bits, int grid_log2) {
    if constexpr (has_scale(F)) {
      bool const is_zero = most_bits < std::bit_cast<std::uint32_t>(1.0F);
      // A whole number; above 2^16 it is one anyway, since scales have 16 bits.
      float const scale = is_zero ? 1 : __builtin_ceilf(Code<F>::scale(most_bits));
      return {scale, 1.0 / static_cast<double>(scale)};
    } else {
      return {__builtin_ldexp(1.0, -grid_log2), __builtin_ldexp(1.0, grid_log2)};
    }
  }
  // Returns the scale of a row that was received with this scale.
  GPUPS_FN static UnitScale received(float scale, int grid_log2) {
    if constexpr (has_scale(F)) return {scale, 0};
    return of(0, grid_log2);
  }
  GPUPS_FN float sent() const { return static_cast<float>(unit); }

  GPUPS_FN float scaled(std::int64_t units) const { return static_cast<float>(static_cast<double>(units) * inverse); }
  // Returns the units of a decoded code: an exact product of at most 31 bits. Invalid codes, such as NaN, count as 0.
  GPUPS_FN std::int64_t units(float decoded) const {
    double const whole = static_cast<double>(decoded) * unit;
    double const meant = __builtin_fabs(whole) < 0x1p63 ? whole : 0;
    return static_cast<std::int64_t>(meant);
  }
};

}  // namespace gpups::kernels
