// SPDX-License-Identifier: Apache-2.0
// All 16-bit floats, and the floats between two neighbours, compared with their definition in double.
#include "kernels/base/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gpups::kernels::half_test {
namespace {

// The number of mantissa bits of a type; the other bits are the sign and the exponent.
template <class T>
inline constexpr int kMantissaBits = 0;
template <>
inline constexpr int kMantissaBits<Half> = 10;
template <>
inline constexpr int kMantissaBits<BFloat16> = 7;

// Returns the value of the bits by the definition of IEEE 754.
template <class T>
double value_of(T x) {
  int const mantissa_bits = kMantissaBits<T>, exponent_bits = 15 - mantissa_bits;
  int const bias = (1 << (exponent_bits - 1)) - 1;
  int const exponent = (x.bits & 0x7FFF) >> mantissa_bits;
  double const fraction = std::ldexp(x.bits & ((1 << mantissa_bits) - 1), -mantissa_bits);
  double magnitude = std::ldexp(1 + fraction, exponent - bias);
  if (exponent == 0) magnitude = std::ldexp(fraction, 1 - bias);
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return x.bits >> 15 != 0 ? -magnitude : magnitude;
}

template <class T>
class SixteenBitFloats : public testing::Test {
 protected:
  static T of(unsigned bits) { return {static_cast<std::uint16_t>(bits)}; }
  static T largest() { return of((0x7FFFU >> kMantissaBits<T> << kMantissaBits<T>)-1); }
};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBitFloats, Types);

TYPED_TEST(SixteenBitFloats, AllBitPatternsConvertByDefinition) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    TypeParam const x = this->of(bits);
    double const want = value_of(x);
    float const got = to_float(x);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), want) << bits;
      ASSERT_EQ(std::signbit(got), bits >= 0x8000) << bits;
    }
  }
}

TYPED_TEST(SixteenBitFloats, RoundTripKeepsAllBitPatterns) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    TypeParam const x = this->of(bits);
    TypeParam const back = round_to<TypeParam>(to_float(x));
    if (std::isnan(value_of(x))) {
      EXPECT_TRUE(std::isnan(value_of(back)) && (back.bits ^ x.bits) < 0x8000) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TYPED_TEST(SixteenBitFloats, RoundsToNearestWithTiesToEven) {
  for (unsigned bits = 0; bits < this->largest().bits; ++bits) {
    double const low = value_of(this->of(bits)), high = value_of(this->of(bits + 1));
    auto const middle = static_cast<float>((low + high) / 2);  // exact in most cases: a float has enough bits
    if (static_cast<double>(middle) != (low + high) / 2) continue;
    float const below = std::nextafter(middle, 0.0F), above = std::nextafter(middle, INFINITY);
    unsigned const even = bits % 2 == 0 ? bits : bits + 1;
    for (unsigned sign : {0U, 0x8000U}) {
      float const s = sign == 0 ? 1.0F : -1.0F;
      ASSERT_EQ(round_to<TypeParam>(s * below).bits, sign | bits);
      ASSERT_EQ(round_to<TypeParam>(s * middle).bits, sign | even);
      ASSERT_EQ(round_to<TypeParam>(s * above).bits, sign | (bits + 1));
    }
  }
}

TYPED_TEST(SixteenBitFloats, RoundsTooLargeNumbersToInfinity) {
  double const largest = value_of(this->largest());
  double const step = largest - value_of(this->of(this->largest().bits - 1U));
  auto const limit = static_cast<float>(largest + step / 2);
  unsigned const infinity = this->largest().bits + 1U;
  EXPECT_EQ(round_to<TypeParam>(std::nextafter(limit, 0.0F)).bits, this->largest().bits);
  EXPECT_EQ(round_to<TypeParam>(limit).bits, infinity);
  EXPECT_EQ(round_to<TypeParam>(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(round_to<TypeParam>(INFINITY).bits, infinity);
  EXPECT_EQ(round_to<TypeParam>(-INFINITY).bits, infinity | 0x8000U);
}

TYPED_TEST(SixteenBitFloats, KeepsNan) {
  for (std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    EXPECT_TRUE(std::isnan(value_of(round_to<TypeParam>(std::bit_cast<float>(bits))))) << bits;
  }
}

template <std::size_t kWide, class T>
void expect_same_reads(std::vector<T> const& from) {
  for (std::size_t first = 0; first + kWide <= from.size(); first += kWide) {
    float got[kWide];
    read_floats(from.data() + first, got);
    for (std::size_t k = 0; k < kWide; ++k) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[k]), std::bit_cast<std::uint32_t>(to_float(from[first + k])));
    }
  }
}

TYPED_TEST(SixteenBitFloats, RowsConvertLikeSingleNumbers) {
  std::vector<TypeParam> all;
  for (unsigned bits = 0; bits < 0x10000; ++bits) all.push_back(this->of(bits));
  expect_same_reads<4>(all);
  expect_same_reads<16>(all);
  expect_same_reads<28>(all);
  expect_same_reads<64>(all);
}

}  // namespace
}  // namespace gpups::kernels::half_test
