// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the values of sparse streams, which are floats or whole units of a grid: sums, conversion of units to
// bytes and back, in the fewest bytes that hold all of them, and conversion between units and floats. On the host. All
// functions accept any value: units from a faulty rank may be any 64-bit integers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/sparse/stream_format.hpp"

namespace gpups::kernels {

// Returns a + b. Integers wrap around on overflow.
template <class T>
constexpr T plus(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

// Returns a - b. Integers wrap around on overflow.
template <class T>
constexpr T minus(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  } else {
    return a - b;
  }
}

// Returns log2 of the bytes of the narrowest signed integer that holds all units.
inline std::uint8_t width_log2_of(std::int64_t const* units, std::size_t n) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < n; ++i) all |= static_cast<std::uint64_t>(units[i] ^ units[i] >> 63);
  int const bits = std::bit_width(all) + 1;
  return bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
}

// Calls f with a zero of the signed integer type of 2^width_log2 bytes.
template <class F>
void with_width(unsigned width_log2, F f) {
  switch (width_log2) {
    case 0:
      return f(std::int8_t{});
    case 1:
      return f(std::int16_t{});
    case 2:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

// Writes units with 2^width_log2 bytes each, and zeros up to the next multiple of 8 bytes. REQUIRES: n > 0.
inline void write_units(std::int64_t const* units, std::size_t n, unsigned width_log2, std::uint8_t* to) {
  std::memset(to + value_bytes(StreamValues::kUnits, n, width_log2) - 8, 0, 8);
  with_width(width_log2, [&]<class Integer>(Integer) {
    for (std::size_t i = 0; i < n; ++i) {
      auto const narrowed = static_cast<Integer>(units[i]);
      std::memcpy(to + i * sizeof narrowed, &narrowed, sizeof narrowed);
    }
  });
}

// Reads units of 2^width_log2 bytes each.
inline void read_units(std::uint8_t const* from, std::size_t n, unsigned width_log2, std::int64_t* to) {
  with_width(width_log2, [&]<class Integer>(Integer narrowed) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(&narrowed, from + i * sizeof narrowed, sizeof narrowed);
      to[i] = narrowed;
    }
  });
}

// Returns the number of units nearest to x, or 0 if it does not fit in 64 bits or x is NaN.
inline std::int64_t nearest_units(float x, double per_unit) {
  double const units = std::rint(static_cast<double>(x) * per_unit);
  return std::abs(units) < 0x1p63 ? static_cast<std::int64_t>(units) : 0;
}
// Returns the units of x, rounded towards zero, so never more than the sender had; 0 as in nearest_units().
inline std::int64_t whole_units(float x, double per_unit) {
  double const units = static_cast<double>(x) * per_unit;
  return std::abs(units) < 0x1p63 ? static_cast<std::int64_t>(units) : 0;
}

}  // namespace gpups::kernels
