// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding: all 65,536 draws of a number, compared with the expected result of each; and the random bits of
// rows.
#include "kernels/base/stochastic_rounding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "kernels/base/float_vector.hpp"

namespace gpups::kernels::stochastic_rounding_test {
namespace {

template <class T>
class StochasticRounding : public testing::Test {
 protected:
  static constexpr int kMantissaBits = std::is_same_v<T, Half> ? 10 : 7;
  static T of(unsigned bits) { return {static_cast<std::uint16_t>(bits)}; }
  static T largest() { return of((0x7FFFU >> kMantissaBits << kMantissaBits) - 1); }
  static double value(unsigned bits) { return to_float(of(bits)); }
};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(StochasticRounding, Types);

constexpr std::uint32_t kDraws = 0x10000;

// `below` is the largest number of the type that is at most x. Expects that the fraction of draws that round up is the
// position of x between `below` and the next number.
template <class T>
void expect_share(T below, float x) {
  double const low = to_float(below), high = to_float(T{static_cast<std::uint16_t>(below.bits + 1)});
  std::uint32_t up = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    for (float const sign : {1.0F, -1.0F}) {
      T const got = round_stochastically<T>(sign * x, draw);
      unsigned const magnitude = got.bits & 0x7FFFU;
      ASSERT_TRUE(magnitude == below.bits || magnitude == below.bits + 1U) << x << " became " << to_float(got);
      ASSERT_EQ(got.bits >> 15, sign < 0 ? 1 : 0);
      if (sign > 0) up += magnitude - below.bits;
    }
  }
  double const share = (static_cast<double>(x) - low) / (high - low) * kDraws;
  EXPECT_LE(std::abs(up - share), 1) << x;
  // For normal bfloat16 numbers 16 random bits are enough, and the mean is exactly x.
  if (std::is_same_v<T, BFloat16> && below.bits >= 0x80) {
    EXPECT_EQ(up, share) << x;
  }
}

TYPED_TEST(StochasticRounding, MeanOfAllDrawsIsTheNumber) {
  for (unsigned const below : {0U, 1U, 5U, 0x7FU, 0x80U, 0x3FFU, 0x400U, 0x3555U, 0x3C00U, 0x3F80U, 0x7BFEU}) {
    double const low = this->value(below), high = this->value(below + 1);
    for (double const share : {0.0, 0x1p-13, 0.125, 0.25, 0.5, 0.75, 1 - 0x1p-13}) {
      auto const x = static_cast<float>(low + share * (high - low));
      if (static_cast<double>(x) != low + share * (high - low)) continue;  // not a float
      expect_share(this->of(below), x);
    }
  }
}

TYPED_TEST(StochasticRounding, KeepsRepresentableNumbers) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float const x = to_float(this->of(bits));
    for (std::uint32_t const draw : {0U, 1U, 0x7FFFU, 0x8000U, 0xFFFFU}) {
      TypeParam const got = round_stochastically<TypeParam>(x, draw);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(to_float(got)));
      } else {
        ASSERT_EQ(got.bits, bits) << x << " with " << draw;
      }
    }
  }
}

TYPED_TEST(StochasticRounding, RoundsTooLargeNumbersToInfinity) {
  double const largest = to_float(this->largest()), step = largest - this->value(this->largest().bits - 1U);
  auto const beyond = static_cast<float>(largest + step / 4);
  EXPECT_EQ(round_stochastically<TypeParam>(beyond, 0).bits, this->largest().bits);
  EXPECT_EQ(round_stochastically<TypeParam>(beyond, 0xFFFF).bits, this->largest().bits + 1U);
  for (std::uint32_t const draw : {0U, 0xFFFFU}) {
    EXPECT_EQ(round_stochastically<TypeParam>(INFINITY, draw).bits, this->largest().bits + 1U);
    EXPECT_EQ(round_stochastically<TypeParam>(-INFINITY, draw).bits, (this->largest().bits + 1U) | 0x8000U);
  }
  if constexpr (std::is_same_v<TypeParam, Half>) {
    EXPECT_EQ(round_stochastically<Half>(65536.0F, 0).bits, 0x7C00);
    EXPECT_EQ(round_stochastically<Half>(1e30F, 0).bits, 0x7C00);
  }
}

TYPED_TEST(StochasticRounding, KeepsNan) {
  for (std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    for (std::uint32_t const draw : {0U, 0x8000U, 0xFFFFU}) {
      EXPECT_TRUE(std::isnan(to_float(round_stochastically<TypeParam>(std::bit_cast<float>(bits), draw)))) << bits;
    }
  }
}

// Vectors give the same results as single numbers, for floats of every kind.
TYPED_TEST(StochasticRounding, VectorsRoundLikeSingleNumbers) {
  using Words = BitVectors<16>::Words;
  std::uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    Words bits{}, draws{};
    for (int k = 0; k < 16; ++k) {
      state = state * 1664525 + 1013904223;
      bits[k] = state;
      draws[k] = (state >> 7 ^ state << 5) & 0xFFFF;
    }
    Words const got = rounded_bits(TypeParam{}, bits, draws);
    for (int k = 0; k < 16; ++k) {
      ASSERT_EQ(got[k], round_stochastically<TypeParam>(std::bit_cast<float>(bits[k]), draws[k]).bits) << bits[k];
    }
  }
}

TEST(RoundingBits, AreWordsOfPhilox) {
  RoundingDraw const draw{philox_key(0x123456789), 0xFEDCBA9876543210, 7};
  RoundingBits bits(draw);
  for (std::size_t j = 0; j < 1000; j += 4) {
    std::uint16_t const* const got = bits.from(j);
    for (std::size_t k = j; k < j + 4; ++k) {
      auto const words = philox(draw.seed, {{0x76543210, 0xFEDCBA98, static_cast<std::uint32_t>(k / 8), 7}});
      ASSERT_EQ(got[k - j], words.word[k % 8 / 2] >> (k % 2 * 16) & 0xFFFF) << k;
    }
  }
}

// Another seed, key, step or column gives other bits.
TEST(RoundingBits, DependOnSeedKeyStepAndColumn) {
  std::set<std::vector<std::uint16_t>> all;
  auto const add = [&](RoundingDraw const& draw, std::size_t from) {
    RoundingBits bits(draw);
    std::vector<std::uint16_t> row;
    for (std::size_t j = 0; j < from + 64; j += 16) {
      std::uint16_t const* const some = bits.from(j);
      if (j >= from) row.insert(row.end(), some, some + 16);
    }
    all.insert(row);
  };
  RoundingDraw const draw{philox_key(5), 6, 7};
  add(draw, 0);
  add(draw, 64);
  add({philox_key(6), 6, 7}, 0);
  add({philox_key(5), 7, 7}, 0);
  add({philox_key(5), 6 | std::uint64_t{1} << 40, 7}, 0);
  add({philox_key(5), 6, 8}, 0);
  EXPECT_EQ(all.size(), 6U);
}

}  // namespace
}  // namespace gpups::kernels::stochastic_rounding_test
