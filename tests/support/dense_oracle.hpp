// SPDX-License-Identifier: Apache-2.0
// A simple implementation of dense layers as loops in double, and derivatives by finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "gpups/array.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {

// A matrix of doubles without padding.
struct Dense {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  Dense() = default;
  Dense(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, 0) {}
  explicit Dense(MatrixView<float const> from) : Dense(from.rows(), from.columns()) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) at(i, j) = from.row(i)[j];
    }
  }
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

// bias: empty, or (1, outputs)
inline Dense linear_oracle(Dense const& in, Dense const& weights, Dense const& bias, bool relu) {
  Dense out(in.rows, weights.rows);
  for (std::size_t i = 0; i < out.rows; ++i) {
    for (std::size_t j = 0; j < out.columns; ++j) {
      double sum = bias.values.empty() ? 0 : bias.at(0, j);
      for (std::size_t k = 0; k < in.columns; ++k) sum += in.at(i, k) * weights.at(j, k);
      out.at(i, j) = relu ? std::max(0.0, sum) : sum;
    }
  }
  return out;
}

inline double dot_oracle(Dense const& rows, std::size_t i, std::size_t dim, std::size_t f, std::size_t g) {
  double sum = 0;
  for (std::size_t k = 0; k < dim; ++k) {
    sum += rows.at(i, f * row_stride(dim) + k) * rows.at(i, g * row_stride(dim) + k);
  }
  return sum;
}

// Returns vector 0 with its padding, then the dot products of pairs.
inline Dense interact_pairs_oracle(Dense const& rows, std::size_t slots, std::size_t dim) {
  Dense out(rows.rows, row_stride(dim) + slots * (slots - 1) / 2);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    for (std::size_t k = 0; k < dim; ++k) out.at(i, k) = rows.at(i, k);
    std::size_t at = row_stride(dim);
    for (std::size_t f = 0; f < slots; ++f) {
      for (std::size_t g = 0; g < f; ++g) out.at(i, at++) = dot_oracle(rows, i, dim, f, g);
    }
  }
  return out;
}

inline Dense factorization_oracle(Dense const& rows, std::size_t first_slot, std::size_t slots, std::size_t dim) {
  Dense out(rows.rows, 1);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    for (std::size_t f = first_slot; f < slots; ++f) {
      for (std::size_t g = first_slot; g < f; ++g) out.at(i, 0) += dot_oracle(rows, i, dim, f, g);
    }
  }
  return out;
}

// Returns the sum of weights * out, whose gradient is tested.
inline double weighted_sum(Dense const& weights, Dense const& out) {
  double sum = 0;
  for (std::size_t e = 0; e < out.values.size(); ++e) sum += weights.values[e] * out.values[e];
  return sum;
}

// Returns the derivative of value() by x. The step is small, so that a ReLU rarely changes sign within it.
inline double difference(double& x, std::function<double()> const& value) {
  double const before = x, step = 1e-7;
  x = before + step;
  double const above = value();
  x = before - step;
  double const below = value();
  x = before;
  return (above - below) / (2 * step);
}

// Returns random numbers in [-1, 1) on the host, with zeros in the padding.
inline Matrix<float> random_dense(Random& random, std::size_t rows, std::size_t columns) {
  Matrix<float> to(Device::host(), rows, columns);
  std::vector<float> const from = floats(random, rows, columns);
  std::copy(from.begin(), from.end(), to.view().data());
  return to;
}

// Returns random vectors, (m, slots * row_stride(dim)), with zeros in the padding of each vector.
inline Matrix<float> random_vectors(Random& random, std::size_t m, std::size_t slots, std::size_t dim) {
  Matrix<float> to(Device::host(), m, slots * row_stride(dim));
  std::vector<float> const from = floats(random, m * slots, dim);
  for (std::size_t i = 0; i < m; ++i) {
    std::fill_n(to.view().row(i), to.stride(), 0.0F);
    std::copy_n(from.data() + i * to.columns(), to.columns(), to.view().row(i));
  }
  return to;
}

}  // namespace gpups::test
