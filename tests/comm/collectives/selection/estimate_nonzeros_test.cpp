// SPDX-License-Identifier: Apache-2.0
// The estimated number of nonzeros of an array, from a sample of its elements.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "comm/collectives/selection/select_algorithm.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::comm::estimate_nonzeros_test {
namespace {

std::vector<float> values_of(std::size_t size, double density) {
  test::Random random(size);
  std::vector<float> values(size);
  for (auto& value : values) value = static_cast<double>(test::below(random, 1 << 20)) < density * (1 << 20) ? -.5F : 0;
  return values;
}

TEST(EstimateNonzeros, CountsShortArraysExactly) {
  for (std::size_t const size : {0, 1, 15, 100, 2048}) {
    EXPECT_EQ(estimate_nonzeros(View<float const>(values_of(size, 1)), 1), size);
    EXPECT_EQ(estimate_nonzeros(View<float const>(values_of(size, 0)), 1), 0U);
  }
  EXPECT_EQ(estimate_nonzeros(View<float const>(std::vector<float>{0, 1, -0.0F, 2}), 1), 2U);
}

// The sample has 2048 independent elements: nearly all estimates are within two standard errors.
TEST(EstimateNonzeros, IsCloseForLongArrays) {
  constexpr std::size_t kSize = 1000003;
  for (double const density : {0., .01, .3, .6, 1.}) {
    auto const values = values_of(kSize, density);
    double const error = std::sqrt(density * (1 - density) / 2048);
    int close = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      double const found = static_cast<double>(estimate_nonzeros(View<float const>(values), seed)) / kSize;
      close += std::abs(found - density) <= 2 * error + 1e-5 ? 1 : 0;
    }
    EXPECT_GE(close, 85) << density;
  }
}

// Every position is in the sample of some seed.
TEST(EstimateNonzeros, SamplesAllPositions) {
  for (std::size_t const size : {2064, 4080, 6000, 10000, 100000}) {
    for (std::size_t const last : {std::size_t{0}, size / 2, size - 32}) {  // 16 elements after it are not 0
      std::vector<float> values(size);
      for (std::size_t i = last; i < last + 16; ++i) values[i] = 1;
      std::uint64_t found = 0;
      for (std::uint64_t seed = 0; seed < 1000 && found == 0; ++seed) {
        found = estimate_nonzeros(View<float const>(values), seed);
      }
      EXPECT_GT(found, 0U) << size << " elements, from " << last << " on";
    }
  }
}

// Elements at regular distances are not missed with every seed.
TEST(EstimateNonzeros, SeedChangesSampledPositions) {
  std::vector<float> values(std::size_t{1} << 20);
  for (std::size_t i = 0; i < values.size(); i += 4096) values[i] = 1;
  std::set<std::uint64_t> found;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) found.insert(estimate_nonzeros(View<float const>(values), seed));
  EXPECT_GT(found.size(), 1U);
}

}  // namespace
}  // namespace gpups::comm::estimate_nonzeros_test
