// SPDX-License-Identifier: Apache-2.0
// Errors of a factorization at sizes that are no multiples of a group, compared with loops in double.
#include "kernels/factor/rating_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

namespace gpups::test::rating_errors_test {
namespace {

using namespace kernels;

struct Problem {
  Problem(std::size_t n, std::size_t dim)
      : rows(Device::host(), 19, dim), columns(Device::host(), 23, dim), slopes(n), losses(rating_losses(n)) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (Matrix<float> const* matrix : {&rows, &columns}) {
      for (float& x : matrix->view().flat()) x = 0;
      for (std::size_t i = 0; i < matrix->rows(); ++i) {
        for (float& x : matrix->row(i)) x = 0.3F * normal(random);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      rows_of.push_back(static_cast<std::uint32_t>(random() % rows.rows()));
      columns_of.push_back(static_cast<std::uint32_t>(random() % columns.rows()));
      ratings.push_back(normal(random));
    }
  }

  void add_biases() {
    for (std::size_t i = 0; i < columns.rows(); ++i) biases.push_back(0.25F * static_cast<float>(i) - 3);
  }
  float bias(std::size_t i) const { return biases.empty() ? 0 : biases[columns_of[i]]; }

  void run(int threads) {
    Stream stream(Device::host(), threads);
    rating_errors(stream, {.rows = rows,
                           .columns = columns,
                           .rows_of = View<std::uint32_t const>(rows_of),
                           .columns_of = View<std::uint32_t const>(columns_of),
                           .ratings = View<float const>(ratings),
                           .column_biases = View<float const>(biases),
                           .slopes = slopes,
                           .losses = losses});
  }

  Matrix<float> rows, columns;
  std::vector<std::uint32_t> rows_of, columns_of;
  std::vector<float> ratings, biases, slopes;
  std::vector<std::int64_t> losses;
};

// n, dim
class RatingErrorsOfSize : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RatingErrorsOfSize,
                         testing::Combine(testing::Values(0, 1, 15, 16, 17, 61, 5000),
                                          testing::Values(1, 5, 15, 16, 18, 32, 100)));

TEST_P(RatingErrorsOfSize, MatchDefinition) {
  auto const [n, dim] = GetParam();
  for (bool const biased : {false, true}) {
    Problem p(n, dim);
    if (biased) p.add_biases();
    p.run(1);
    std::vector<double> losses(rating_losses(n));
    for (std::size_t i = 0; i < n; ++i) {
      double product = p.bias(i);
      for (std::size_t j = 0; j < dim; ++j)
        product += double{p.rows.row(p.rows_of[i])[j]} * p.columns.row(p.columns_of[i])[j];
      double const error = product - double{p.ratings[i]};
      ASSERT_NEAR(p.slopes[i], 2 * error, 2e-5) << i;
      losses[i / kRatingsTogether] += error * error;
    }
    for (std::size_t g = 0; g < losses.size(); ++g) {
      ASSERT_NEAR(static_cast<double>(p.losses[g]) * 0x1p-30, losses[g], 1e-4 * (1 + losses[g])) << g;
    }
  }
}

TEST_P(RatingErrorsOfSize, BitsAreIndependentOfThreadCount) {
  auto const [n, dim] = GetParam();
  Problem one(n, dim), two(n, dim);
  one.run(1);
  two.run(2);
  EXPECT_EQ(one.slopes, two.slopes);
  EXPECT_EQ(one.losses, two.losses);
}

// The slope of a rating does not depend on its neighbours.
TEST_P(RatingErrorsOfSize, SlopeDoesNotDependOnOtherRatings) {
  auto const [n, dim] = GetParam();
  Problem all(n, dim);
  all.run(1);
  for (std::size_t i = 0; i < n; i += 7) {
    Problem one(1, dim);
    one.rows_of = {all.rows_of[i]};
    one.columns_of = {all.columns_of[i]};
    one.ratings = {all.ratings[i]};
    one.run(1);
    ASSERT_EQ(one.slopes[0], all.slopes[i]) << i;
  }
}

TEST(RatingErrors, NanRatingGivesLargeLossAndNanSlope) {
  for (std::size_t dim : {4, 32}) {
    Problem p(16, dim);
    p.ratings[3] = std::numeric_limits<float>::quiet_NaN();
    p.run(1);
    EXPECT_TRUE(std::isnan(p.slopes[3])) << dim;
    EXPECT_GE(p.losses[0], std::int64_t{1} << 40) << dim;
    EXPECT_LT(p.losses[0], (std::int64_t{1} << 40) + (std::int64_t{1000} << 30)) << dim;
  }
}

}  // namespace
}  // namespace gpups::test::rating_errors_test
