// SPDX-License-Identifier: Apache-2.0
// Conversion of one number in each format of format.hpp: a scaled float to a code, a code to a float, and the scale for
// a row's largest magnitude. Host and device give the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/base/assert.hpp"
#include "kernels/base/half.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// Returns the bits of |x|. Their order is that of magnitudes, with NaN above infinity.
GPUPS_ANY_FN inline std::uint32_t magnitude_bits(float x) { return std::bit_cast<std::uint32_t>(x) & ~kFloatSign; }
// Returns x limited to [-most, most]; NaN becomes -most.
GPUPS_ANY_FN inline float clamped(float x, float most) {
  float const low = x > -most ? x : -most;
  return low < most ? low : most;
}

// Rows whose largest magnitude is outside of [2^-100, 2^127) are not scaled.
inline constexpr std::uint32_t kScaleLeast = (127U - 100U) << 23, kScaleMost = (127U + 127U) << 23;

// The codes of a format. encode() takes x / scale, whose magnitude is at most the largest of the format, except for
// rounding errors; `uniform` is a random number in [0, 1).
template <Format F>
struct Code;

template <>
struct Code<Format::kFloat> {
  GPUPS_ANY_FN static std::uint32_t encode(float x) { return std::bit_cast<std::uint32_t>(x); }
  GPUPS_ANY_FN static float decode(std::uint32_t code) { return std::bit_cast<float>(code); }
};

template <>
struct Code<Format::kHalf> {
  GPUPS_ANY_FN static std::uint32_t encode(float x) {
    float const finite = clamped(x, 65504);
    return magnitude_bits(x) < kFloatInfinity ? round_to<Half>(finite).bits : 0x7E00U;
  }
  GPUPS_ANY_FN static float decode(std::uint32_t code) { return to_float(Half{static_cast<std::uint16_t>(code)}); }
};

template <>
struct Code<Format::kBFloat16> {
  GPUPS_ANY_FN static std::uint32_t encode(float x) {
    float const finite = clamped(x, 0x1.FEp127F);
    return magnitude_bits(x) < kFloatInfinity ? round_to<BFloat16>(finite).bits : 0x7FC0U;
  }
  GPUPS_ANY_FN static float decode(std::uint32_t code) { return std::bit_cast<float>(code << 16); }
};

// Floats of 8 bits: `kMantissa` bits of mantissa, and exponents from 1 - kBias on.
template <int kBias, int kMantissa>
struct CodeOfFloat8 {
  static constexpr float kMost = 1.75F * static_cast<float>(1U << (kBias == 7 ? 8 : 15));  // 448, 57344

  // Returns the smallest power of two by which a row with this largest magnitude is scaled to at most kMost.
  GPUPS_ANY_FN static float scale(std::uint32_t magnitude) {
    constexpr std::uint32_t kExponent = kBias == 7 ? 8 : 15;  // of kMost, whose mantissa is 1.75
    std::uint32_t const up = (magnitude & 0x7FFFFFU) > 0x600000U ? 1 : 0;
    return std::bit_cast<float>(((magnitude >> 23) + up - kExponent) << 23);
  }
  GPUPS_ANY_FN static std::uint32_t encode(float x) {
    constexpr std::uint32_t kLeastNormal = (128U - kBias) << 23;
    // One unit in the last place of this is the step of subnormals.
    constexpr float kSubnormal = std::bit_cast<float>((128U - kBias + 23 - kMantissa) << 23);
    float const finite = clamped(x, kMost);
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(finite), magnitude = bits & ~kFloatSign;
    std::uint32_t const small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kSubnormal) -
                                std::bit_cast<std::uint32_t>(kSubnormal);
    std::uint32_t const odd = magnitude >> (23 - kMantissa) & 1U;
    std::uint32_t const normal =
        (magnitude - ((127U - kBias) << 23) + (1U << (22 - kMantissa)) - 1 + odd) >> (23 - kMantissa);
    return bits >> 31 << 7 | (magnitude < kLeastNormal ? small : normal);
  }
  GPUPS_ANY_FN static float decode(std::uint32_t code) {
    // Avoids products of subnormal floats, which are slow.
    constexpr float kStep = std::bit_cast<float>((128U - kBias - kMantissa) << 23);
    std::uint32_t const magnitude = code & 0x7FU;
    float const small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * kStep;
    std::uint32_t const normal = (magnitude << (23 - kMantissa)) + ((127U - kBias) << 23);
    std::uint32_t const bits = magnitude < (1U << kMantissa) ? std::bit_cast<std::uint32_t>(small) : normal;
    return std::bit_cast<float>(bits | code >> 7 << 31);
  }
};
template <>
struct Code<Format::kE4M3> : CodeOfFloat8<7, 3> {};
template <>
struct Code<Format::kE5M2> : CodeOfFloat8<15, 2> {};

// Integers from -kMost to kMost, in two's complement.
template <int kBits>
struct CodeOfInteger {
  static constexpr int kMost = (1 << (kBits - 1)) - 1;
  static constexpr std::uint32_t kMask = (1U << kBits) - 1;

  // Returns magnitude / kMost, rounded up to 16 significant bits.
  GPUPS_ANY_FN static float scale(std::uint32_t magnitude) {
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) / kMost);
    return std::bit_cast<float>((bits + 0xFFU) & ~0xFFU);
  }
  GPUPS_ANY_FN static std::uint32_t encode(float x) { return of(__builtin_rintf(x)); }
  // Encodes x * inverse, rounded up with the probability of its fraction. The fma rounds once, whatever the compiler
  // fuses.
  GPUPS_ANY_FN static std::uint32_t encode(float x, float inverse, float uniform) {
    return of(__builtin_floorf(__builtin_fmaf(x, inverse, uniform)));
  }
  GPUPS_ANY_FN static float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<std::int32_t>(code << (32 - kBits)) >> (32 - kBits));
  }

 private:
  GPUPS_ANY_FN static std::uint32_t of(float whole) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(clamped(whole, kMost))) & kMask;
  }
};
template <>
struct Code<Format::kInt8> : CodeOfInteger<8> {};
template <>
struct Code<Format::kInt4> : CodeOfInteger<4> {};
template <>
struct Code<Format::kInt2> : CodeOfInteger<2> {};

// The scale of a row, and its inverse.
struct RowScale {
  float scale, inverse;
};
// Returns the scale of a row with this largest magnitude, given as the bits of a float.
template <Format F>
GPUPS_ANY_FN inline RowScale scale_of(std::uint32_t magnitude) {
  if constexpr (has_scale(F)) {
    if (magnitude >= kScaleMost) return {std::bit_cast<float>(kFloatInfinity | kFloatQuiet), 0};
    if (magnitude < kScaleLeast) return {0, 0};
    float const scale = Code<F>::scale(magnitude);
    return {scale, 1 / scale};
  } else {
    return {1, 1};
  }
}

// Calls call.as<F>(ex) for this format.
template <class Ex, class Call>
void with_format(Ex ex, Format format, Call const& call) {
  switch (format) {
    case Format::kFloat:
      return call.template as<Format::kFloat>(ex);
    case Format::kHalf:
      return call.template as<Format::kHalf>(ex);
    case Format::kBFloat16:
      return call.template as<Format::kBFloat16>(ex);
    case Format::kE4M3:
      return call.template as<Format::kE4M3>(ex);
    case Format::kE5M2:
      return call.template as<Format::kE5M2>(ex);
    case Format::kInt8:
      return call.template as<Format::kInt8>(ex);
    case Format::kInt4:
      return call.template as<Format::kInt4>(ex);
    case Format::kInt2:
      return call.template as<Format::kInt2>(ex);
  }
}

// Asserts that `encoded` has room for n rows of `dim` columns.
template <class Encoded>
void assert_room([[maybe_unused]] Encoded const& encoded, [[maybe_unused]] std::size_t n,
                 [[maybe_unused]] std::size_t dim) {
  GPUPS_ASSERT(encoded.dim == dim && encoded.codes.size() >= n * code_bytes(encoded.format, dim));
  GPUPS_ASSERT(!has_scale(encoded.format) || encoded.scales.size() >= n);
}

}  // namespace gpups::kernels
