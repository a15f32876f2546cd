// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/dropout.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/inputs.hpp"

namespace gpups::test::dropout_test {
namespace {

using namespace kernels;

struct Draw {
  float rate = 0.25F;
  std::uint64_t seed = 1;
  std::uint32_t layer = 0;
  Clock clock{5};
};

// Returns which of (samples, columns) values are kept. Expects that each kept value is 1 / (1 - rate).
std::vector<bool> kept(Draw const& draw, std::vector<std::uint32_t> const& samples, std::size_t columns,
                       int threads = 1) {
  Matrix<float> const values(Device::host(), samples.size(), columns);
  for (float& x : values.view().flat()) x = 1;
  Stream stream(Device::host(), threads);
  dropout(stream, {values, draw.rate, draw.seed, draw.layer, draw.clock, samples});
  double const rate = std::round(draw.rate * 65536.0) / 65536;  // dropout uses a rate of 16 bits
  std::vector<bool> all;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (float x : values.row(i)) {
      all.push_back(x != 0);
      EXPECT_TRUE(x == 0 || std::abs(x * (1 - rate) - 1) < 1e-6) << x;
    }
    for (std::size_t j = columns; j < values.stride(); ++j) EXPECT_EQ(values.view().row(i)[j], 1) << "padding";
  }
  return all;
}

std::vector<std::uint32_t> numbers(std::size_t first, std::size_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(first));
  return samples;
}

TEST(Dropout, DropsTheRequestedFraction) {
  for (float rate : {0.0F, 0.1F, 0.5F, 0.9F}) {
    auto const mask = kept({.rate = rate}, numbers(0, 400), 500);
    double const share =
        static_cast<double>(std::count(mask.begin(), mask.end(), false)) / static_cast<double>(mask.size());
    EXPECT_NEAR(share, rate, rate == 0 ? 0 : 0.005);  // 4.5 standard deviations
  }
}

// Whether an element is dropped does not depend on its neighbours in the row and in the column.
TEST(Dropout, NeighbouringElementsAreIndependent) {
  std::size_t const n = 4096, columns = 8;
  auto const mask = kept({.rate = 0.5F}, numbers(0, n), columns);
  for (std::size_t distance : {std::size_t{1}, std::size_t{2}, columns}) {
    std::size_t same = 0;
    for (std::size_t e = 0; e + distance < mask.size(); ++e) same += mask[e] == mask[e + distance] ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(mask.size()), 0.5, 0.0125) << distance;
  }
}

// The mask of a sample's columns is the same in any microbatch, at any position, for any number of threads, and if the
// layer has more columns.
TEST(Dropout, MaskDependsOnlyOnSampleAndColumn) {
  for (std::size_t columns : {1, 3, 16, 17, 127, 128, 300}) {
    auto const all = kept({}, numbers(0, 511), columns);
    EXPECT_EQ(all == kept({}, numbers(0, 511), columns, 2), true);
    std::size_t const first = 200, count = 37;
    auto const part = kept({}, numbers(first, count), columns), wide = kept({}, numbers(first, count), columns + 130);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        ASSERT_EQ(part[i * columns + j], all[(first + i) * columns + j]);
        ASSERT_EQ(wide[i * (columns + 130) + j], all[(first + i) * columns + j]);
      }
    }
  }
  EXPECT_TRUE(kept({}, {}, 16).empty());
}

TEST(Dropout, MaskDependsOnSeedLayerAndClock) {
  auto const samples = numbers(0, 64);
  auto const mask = kept({}, samples, 64);
  EXPECT_NE(mask, kept({.seed = 2}, samples, 64));
  EXPECT_NE(mask, kept({.layer = 1}, samples, 64));
  EXPECT_NE(mask, kept({.clock = Clock{6}}, samples, 64));
  EXPECT_NE(mask, kept({.clock = Clock{(std::int64_t{1} << 32) + 5}}, samples, 64));
  EXPECT_NE(mask, kept({}, numbers(64, 64), 64));
}

}  // namespace
}  // namespace gpups::test::dropout_test
