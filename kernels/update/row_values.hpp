// SPDX-License-Identifier: Apache-2.0
// The values of a row as the formula of an optimizer reads and writes them, some columns at a time: floats, or numbers
// of 16 bits, to which new values are rounded stochastically. REQUIRES: each column is written once, in ascending
// order, and not read after that.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/base/half.hpp"
#include "kernels/base/stochastic_rounding.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/update/row_columns.hpp"
#ifndef __CUDACC__
#include "kernels/base/float_vector.hpp"
#endif

namespace gpups::kernels {

// Values of type float.
template <class C>
struct FloatValues {
  C columns;
  float* row;

  GPUPS_FN auto get(std::size_t j) const { return columns.get(row + j); }
  // Writes the columns from j on. Returns NaN in columns whose value is not finite, else 0.
  template <class V>
  GPUPS_FN V put(std::size_t j, V x) const {
    columns.put(row + j, x);
    return 0.0F * x;
  }
};

#ifdef __CUDACC__
// Values of a type T of 16 bits.
template <class C, class T>
struct RoundedValues {
  T* row;
  RoundingDraw draw;

  __device__ Quad get(std::size_t j) const {
    uint2 const four = *reinterpret_cast<uint2 const*>(row + j);
    return {number(four.x), number(four.x >> 16), number(four.y), number(four.y >> 16)};
  }
  // The same; values are rounded before they are checked.
  __device__ Quad put(std::size_t j, Quad x) const {
    FourBits const bits = rounding_bits(draw, j);
    std::uint32_t const a = rounded(x.of.x, bits.of[0]), b = rounded(x.of.y, bits.of[1]);
    std::uint32_t const c = rounded(x.of.z, bits.of[2]), d = rounded(x.of.w, bits.of[3]);
    *reinterpret_cast<uint2*>(row + j) = make_uint2(a | b << 16, c | d << 16);
    return 0.0F * Quad{number(a), number(b), number(c), number(d)};
  }

 private:
  __device__ static float number(std::uint32_t bits) { return to_float(T{static_cast<std::uint16_t>(bits)}); }
  __device__ static std::uint32_t rounded(float x, std::uint32_t random) {
    return round_stochastically<T>(x, random).bits;
  }
};
#else
// Values of a type T of 16 bits.
template <class C, class T>
struct RoundedValues {
  using V = typename C::Value;
  static constexpr std::size_t kLanes = sizeof(V) / sizeof(float);
  using Words = typename BitVectors<kLanes>::Words;
  using Halves = typename BitVectors<kLanes>::Halves;

  T* row;
  RoundingBits* bits;

  V get(std::size_t j) const {
    FloatVector<kLanes> numbers;
    numbers.load(row + j);
    return std::bit_cast<V>(numbers.value);
  }
  // The same; values are rounded before they are checked.
  V put(std::size_t j, V x) const {
    Words const rounded = rounded_bits(T{}, std::bit_cast<Words>(x), words_of<kLanes>(bits->from(j)));
    Halves const numbers = __builtin_convertvector(rounded, Halves);
    std::memcpy(row + j, &numbers, sizeof numbers);
    V const not_a_number = V{} + std::numeric_limits<float>::quiet_NaN();
    return (rounded & kExponent) == kExponent ? not_a_number : V{};
  }

 private:
  static constexpr std::uint32_t kExponent = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
};
#endif

}  // namespace gpups::kernels
