// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding of floats to numbers of 16 bits: the mean over all draws is the float.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/base/function.hpp"
#include "kernels/base/half.hpp"

namespace gpups::kernels {

// Returns the bits of the 16-bit numbers that floats with these bits are rounded to. random: uniform in [0, 2^16).
// Words: a uint32_t or, on the host, a vector of them. Has no branches.
template <class Words>
GPUPS_ANY_FN inline Words rounded_bits(BFloat16, Words bits, Words random) {
  auto const is_nan = (bits & ~kFloatSign) > kFloatInfinity;
  return (is_nan ? bits | kFloatQuiet : bits + random) >> 16;
}

// Returns a float in units of 2^-40, rounded down. REQUIRES: bits of a float in [0, 2^-14).
GPUPS_ANY_FN inline std::uint32_t small_units(std::uint32_t bits) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::bit_cast<float>(bits) * 0x1p40F));
}
#ifndef __CUDACC__
template <std::size_t kBytes>
struct SmallUnits {
  typedef float Floats __attribute__((vector_size(kBytes)));
  typedef std::int32_t Integers __attribute__((vector_size(kBytes)));
};
template <class Words>
inline Words small_units(Words bits) {
  using Floats = typename SmallUnits<sizeof(Words)>::Floats;
  using Integers = typename SmallUnits<sizeof(Words)>::Integers;
  return std::bit_cast<Words>(__builtin_convertvector(std::bit_cast<Floats>(bits) * 0x1p40F, Integers));
}
#endif

template <class Words>
GPUPS_ANY_FN inline Words rounded_bits(Half, Words bits, Words random) {
  constexpr std::uint32_t kTooLarge = 0x47800000;     // 65536
  constexpr std::uint32_t kLeastNormal = 0x38800000;  // 2^-14
  Words const magnitude = bits & ~kFloatSign;
  // Normal halves have 13 bits less than floats, and an exponent bias that is smaller by 112.
  Words const drawn = magnitude + (random >> 3);
  Words const normal = (drawn - (112U << 23)) >> 13;
  // Subnormal halves are multiples of 2^-24.
  auto const is_small = magnitude < kLeastNormal;
  Words const subnormal = (small_units(is_small ? magnitude : magnitude - magnitude) + random) >> 16;
  Words const finite = is_small ? subnormal : normal;
  Words const infinity = finite - finite + 0x7C00U;
  Words const special = magnitude > kFloatInfinity ? 0x7E00U | (magnitude >> 13 & 0x3FFU) : infinity;
  return (bits & kFloatSign) >> 16 | (drawn >= kTooLarge ? special : finite);
}

// Returns one of the two numbers of type T next to x, with probabilities that make their mean x. Probabilities are
// exact, except that for halves below 2^-14 in magnitude they are multiples of 2^-16. Numbers of type T, infinities and
// NaN do not change; finite floats that are too large become infinite. random: uniform in [0, 2^16).
template <class T>
GPUPS_ANY_FN inline T round_stochastically(float x, std::uint32_t random) {
  return {static_cast<std::uint16_t>(rounded_bits(T{}, std::bit_cast<std::uint32_t>(x), random))};
}

}  // namespace gpups::kernels
