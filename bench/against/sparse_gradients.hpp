// SPDX-License-Identifier: Apache-2.0
// A synthetic batch of sparse gradients, and the table that it updates.
#pragma once

#include <vector>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/update/sum_and_update.hpp"

namespace gpups::bench {

inline constexpr int kGridLog2 = -30;

// The arrays of the batch and of the table, as SumAndUpdate uses them.
struct SparseGradients {
  std::size_t dim;
  Array<std::uint32_t> offsets, order, sources, ids, bad_row;
  Array<float> coefficients;
  Matrix<float> source_rows;
  double contribution_max;  // of coefficients and source rows
  Optimizer optimizer;
  kernels::RowStorage<float> values, state;
  kernels::RowStorage<std::uint32_t> lifecycle;

  std::size_t entries() const { return order.size(); }
  std::size_t rows() const { return ids.size(); }
  MatrixView<float const> coefficients_as_row() const {
    return {coefficients.data(), 1, coefficients.size(), coefficients.size()};
  }
  kernels::SumAndUpdate arguments() const;
};

// Makes a batch. rows[e], below table_rows, and sources[e] are the row in the table and the source of entry e; without
// `sources`, entry e has source e.
SparseGradients sparse_gradients(Stream& stream, std::vector<std::uint32_t> const& rows,
                                 std::vector<std::uint32_t> const& sources, std::size_t table_rows, std::size_t dim,
                                 Optimizer const& optimizer);

}  // namespace gpups::bench
