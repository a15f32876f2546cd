// SPDX-License-Identifier: Apache-2.0
// The matrix products of scoring, at sizes that end within tiles, against loops in double.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>

#include "kernels/score/dot_rows.hpp"
#include "kernels/score/mix_rows.hpp"

namespace gpups::test {
namespace {

using namespace kernels;

Matrix<float> random_matrix(std::size_t rows, std::size_t dim, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  Matrix<float> matrix(Device::host(), rows, dim);
  for (float& x : matrix.view().flat()) x = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (float& x : matrix.row(i)) x = uniform(random);
  }
  return matrix;
}

std::vector<std::uint32_t> random_index(std::size_t count, std::size_t rows) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> index(count);
  for (auto& i : index) i = static_cast<std::uint32_t>(random() % rows);
  return index;
}

// n, m, dim
class Products : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Products,
                         testing::Combine(testing::Values(0, 1, 7, 8, 61), testing::Values(1, 15, 33, 300),
                                          testing::Values(1, 5, 16, 18, 64, 100)));

TEST_P(Products, DotRowsAreAllDotProducts) {
  auto const [n, m, dim] = GetParam();
  Matrix<float> const left = random_matrix(n, dim, 1), right = random_matrix(50, dim, 2), out(Device::host(), n, m);
  auto const index = random_index(2 * m, 50);
  Stream stream(Device::host(), 2);
  dot_rows(stream, {.left = left, .right = {right, index.data(), 2}, .out = out});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < dim; ++k) sum += double{left.row(i)[k]} * right.row(index[2 * j])[k];
      ASSERT_NEAR(out.row(i)[j], sum, 1e-5) << i << ", " << j;
    }
  }
}

// A product's bits are the same alone, as a part of a larger one.
TEST_P(Products, DotRowsDependOnTheirTwoRowsAlone) {
  auto const [n, m, dim] = GetParam();
  Matrix<float> const left = random_matrix(n, dim, 1), right = random_matrix(m, dim, 2);
  Matrix<float> const out(Device::host(), n, m), one(Device::host(), 1, 1);
  Stream stream(Device::host(), 2);
  dot_rows(stream, {.left = left, .right = {right}, .out = out});
  for (std::size_t i = 0; i < n; i += 3) {
    for (std::size_t j = 0; j < m; j += 5) {
      dot_rows(stream, {.left = left.view().slice(i, 1), .right = {right.view().slice(j, 1)}, .out = one});
      ASSERT_EQ(one.row(0)[0], out.row(i)[j]) << i << ", " << j;
    }
  }
}

TEST_P(Products, MixRowsAreWeightedSumsForBothOrdersOfWeights) {
  auto const [n, m, dim] = GetParam();
  Matrix<float> const rows = random_matrix(40, dim, 1), out(Device::host(), n, dim);
  Matrix<float> const weights = random_matrix(n, m, 2), transposed = random_matrix(m, n, 2);
  auto const index = random_index(m, 40);
  Stream stream(Device::host(), 2);
  for (bool by_row : {true, false}) {
    Matrix<float> const& w = by_row ? weights : transposed;
    mix_rows(stream, {.weights = w.view().data(),
                      .row_step = by_row ? w.stride() : 1,
                      .column_step = by_row ? 1 : w.stride(),
                      .rows = {rows, index.data()},
                      .count = m,
                      .out = out});
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < out.stride(); ++k) {
        double sum = 0;
        for (std::size_t j = 0; j < m && k < dim; ++j) {
          sum += double{by_row ? w.row(i)[j] : w.row(j)[i]} * rows.row(index[j])[k];
        }
        ASSERT_NEAR(out.view().row(i)[k], sum, 2e-5) << i << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace gpups::test
