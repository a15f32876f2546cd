// SPDX-License-Identifier: Apache-2.0
// The logistic loss, compared with its definition in double, near zero and far from it.
#include "kernels/dense/logistic_loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/compare.hpp"
#include "tests/support/dense_oracle.hpp"

namespace gpups::test::logistic_loss_test {
namespace {

using namespace kernels;

double loss_oracle(double logit, double label) {
  return std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - label * logit;
}

struct Losses {
  Losses(std::vector<std::vector<float>> const& terms, std::vector<float> const& labels)
      : gradient(labels.size()), probabilities(labels.size()), units(labels.size()) {
    std::size_t const t = terms.empty() ? 1 : terms[0].size();
    Matrix<float> const matrix(Device::host(), terms.size(), t);
    for (std::size_t i = 0; i < terms.size(); ++i) std::copy(terms[i].begin(), terms[i].end(), matrix.row(i).begin());
    Stream stream(Device::host(), 2);
    logistic_loss(stream, {matrix, labels, gradient, units, probabilities});
    std::vector<float> again(labels.size());
    std::vector<std::int64_t> same(labels.size());
    logistic_loss(stream, {matrix, labels, again, same, {}});
    EXPECT_EQ(bytes_of(again) == bytes_of(gradient) && same == units, true);
  }
  std::vector<float> gradient, probabilities;
  std::vector<std::int64_t> units;
};

TEST(LogisticLoss, IsCrossEntropyWithItsDerivative) {
  Random random(1);
  for (std::size_t m : {0, 1, 3, 511}) {
    for (std::size_t t : {1, 2, 5}) {
      std::vector<std::vector<float>> terms(m, std::vector<float>(t));
      std::vector<float> labels(m);
      for (std::size_t i = 0; i < m; ++i) {
        for (float& x : terms[i]) x = static_cast<float>(uniform(random) * 30 - 15);
        labels[i] = i % 3 == 2 ? static_cast<float>(uniform(random)) : static_cast<float>(i % 3);
      }
      Losses const got(terms, labels);
      for (std::size_t i = 0; i < m; ++i) {
        float sum = 0;
        for (float x : terms[i]) sum += x;
        double logit = sum;
        double const loss = loss_oracle(logit, labels[i]);
        EXPECT_NEAR(static_cast<double>(got.units[i]) * 0x1p-30, loss, 3e-7 * loss + 0x1p-30) << logit;
        double const slope = difference(logit, [&] { return loss_oracle(logit, labels[i]); });
        EXPECT_NEAR(got.gradient[i], slope, 1e-6);
        EXPECT_NEAR(got.probabilities[i], 1 / (1 + std::exp(-logit)), 3e-7);
      }
    }
  }
}

// A correct prediction with a large logit still has a loss and a gradient, and a wrong one does not overflow.
TEST(LogisticLoss, IsAccurateFarFromZero) {
  Losses const got({{30}, {-30}, {500}, {-500}}, {1, 0, 0, 1});
  for (std::size_t i : {0, 1}) {
    EXPECT_NEAR(std::abs(got.gradient[i]), std::exp(-30), 1e-6 * std::exp(-30));
    EXPECT_EQ(got.units[i], static_cast<std::int64_t>(std::exp(-30) * 0x1p30));
  }
  EXPECT_LT(got.gradient[0], 0);
  for (std::size_t i : {2, 3}) {
    EXPECT_EQ(std::abs(got.gradient[i]), 1.0F);
    EXPECT_EQ(got.units[i], std::int64_t{500} << 30);
  }
}

TEST(LogisticLoss, NanHasMaximalLossAndNanGradient) {
  float const nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  Losses const got({{nan}, {infinite}, {1e30F}}, {1, 0, 0});
  EXPECT_TRUE(std::isnan(got.gradient[0]));
  for (std::size_t i : {0, 1, 2}) EXPECT_EQ(got.units[i], std::int64_t{1} << 40);
}

}  // namespace
}  // namespace gpups::test::logistic_loss_test
