// SPDX-License-Identifier: Apache-2.0
// Interactions of a sample's vectors, compared with loops in double, and their gradients, compared with finite
// differences.
#include <gtest/gtest.h>

#include <tuple>

#include "kernels/dense/interact_pairs.hpp"
#include "kernels/dense/interactions.hpp"
#include "tests/support/dense_oracle.hpp"

namespace gpups::test::interactions_test {
namespace {

using namespace kernels;

void expect_near(double got, double want, char const* what) {
  ASSERT_NEAR(got, want, 1e-4 * std::max(1.0, std::abs(want))) << what;
}

// m, slots, dim
class Interactions : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {
 protected:
  std::size_t const m = std::get<0>(GetParam()), slots = std::get<1>(GetParam()), dim = std::get<2>(GetParam());
  Random random{slots * 100 + dim};
  Matrix<float> const rows = random_vectors(random, m, slots, dim);
  Stream stream{Device::host(), 2};

  // Calls act(sample, column of the row) for some random elements.
  template <class Act>
  void each_of_some(Act act) {
    for (int k = 0; k < 25 && m > 0; ++k) {
      std::size_t const i = below(random, m);
      act(i, below(random, slots) * row_stride(dim) + below(random, dim));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Sizes, Interactions,
                         testing::Combine(testing::Values(0, 1, 3, 511), testing::Values(1, 2, 9, 16, 17, 27, 40),
                                          testing::Values(1, 3, 16, 17)));

TEST_P(Interactions, PairsAreDotProductsInFixedOrder) {
  Matrix<float> const out(Device::host(), m, interact_pairs_columns(slots, dim));
  for (float& x : out.view().flat()) x = 99;
  interact_pairs_forward(stream, {rows, slots, dim, out});
  Dense const want = interact_pairs_oracle(Dense(rows), slots, dim);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < out.stride(); ++j) {
      double const x = j < want.columns ? want.at(i, j) : 0;
      ASSERT_NEAR(out.view().row(i)[j], x, 1e-5) << "sample " << i << ", column " << j;
    }
  }
}

TEST_P(Interactions, PairsGradientMatchesFiniteDifferences) {
  Matrix<float> const by_out = random_dense(random, m, interact_pairs_columns(slots, dim));
  Matrix<float> const by_rows(Device::host(), m, rows.columns());
  for (float& x : by_rows.view().flat()) x = 99;
  interact_pairs_backward(stream, {rows, slots, dim, by_out, by_rows});
  each_of_some([&](std::size_t i, std::size_t column) {
    Dense sample(rows.view().slice(i, 1));
    Dense const weights(by_out.view().slice(i, 1));
    double const want = difference(sample.at(0, column),
                                   [&] { return weighted_sum(weights, interact_pairs_oracle(sample, slots, dim)); });
    expect_near(by_rows.row(i)[column], want, "pairs");
  });
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < rows.columns(); ++j) {
      bool const padding = j % row_stride(dim) >= dim;
      ASSERT_TRUE(!padding || by_rows.row(i)[j] == 0) << "padding of sample " << i;
    }
  }
}

TEST_P(Interactions, FactorizationIsSumOfAllPairs) {
  for (std::size_t first : {std::size_t{0}, slots / 2, slots}) {
    Array<float> const out(Device::host(), m);
    factorization_forward(stream, {rows, first, slots, dim, out});
    Dense const want = factorization_oracle(Dense(rows), first, slots, dim);
    for (std::size_t i = 0; i < m; ++i) expect_near(out[i], want.at(i, 0), "factorization");
  }
}

TEST_P(Interactions, FactorizationAddsGradientOfForwardPass) {
  std::size_t const first = slots / 3;
  Matrix<float> const by_out = random_dense(random, 1, m), before = random_vectors(random, m, slots, dim);
  Matrix<float> const by_rows(Device::host(), m, rows.columns());
  copy<float>(stream, by_rows.view().flat(), before.view().flat());
  factorization_backward(stream, {rows, first, slots, dim, {by_out.view().data(), m}, by_rows});
  each_of_some([&](std::size_t i, std::size_t column) {
    Dense sample(rows.view().slice(i, 1));
    double const by_value =
        difference(sample.at(0, column), [&] { return factorization_oracle(sample, first, slots, dim).at(0, 0); });
    expect_near(by_rows.row(i)[column], double{by_out.row(0)[i]} * by_value + before.row(i)[column], "factorization");
  });
}

TEST_P(Interactions, CrossAndItsGradientMatchDefinition) {
  std::size_t const width = rows.columns();
  Matrix<float> const x0 = random_dense(random, m, width), u = random_dense(random, m, width);
  Matrix<float> const out(Device::host(), m, width), by_out = random_dense(random, m, width);
  Matrix<float> const by_x0 = random_dense(random, m, width), by_u(Device::host(), m, width);
  Matrix<float> const by_x(Device::host(), m, width);
  Dense const before(by_x0);
  cross_forward(stream, {x0, u, rows, out});
  cross_backward(stream, {x0, u, by_out, by_u, by_x0, by_x});
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      double a = x0.row(i)[j], b = u.row(i)[j], c = rows.row(i)[j];
      double const weight = by_out.row(i)[j];
      auto const value = [&] { return weight * (a * b + c); };
      expect_near(out.row(i)[j], a * b + c, "out");
      expect_near(by_x0.row(i)[j], before.at(i, j) + difference(a, value), "x0");
      expect_near(by_u.row(i)[j], difference(b, value), "u");
      expect_near(by_x.row(i)[j], difference(c, value), "x");
    }
  }
  // In place: `out` overwrites x, the gradient of u overwrites u, and the gradient of x overwrites that of `out`.
  cross_forward(stream, {x0, u, rows, rows});
  cross_backward(stream, {x0, u, by_out, u, by_x0, by_out});
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      ASSERT_EQ(rows.row(i)[j], out.row(i)[j]);
      ASSERT_EQ(u.row(i)[j], by_u.row(i)[j]);
      ASSERT_EQ(by_out.row(i)[j], by_x.row(i)[j]);
    }
  }
}

}  // namespace
}  // namespace gpups::test::interactions_test
