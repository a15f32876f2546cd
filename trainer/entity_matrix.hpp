// SPDX-License-Identifier: Apache-2.0
// All rows of a table as one matrix, in the order of a dictionary, for ranking and for finding neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::trainer {

// Reads the rows of `keys` wherever they are, a bounded number at a time. Waits. Takes (keys, dim) on the store's
// device. Not collective: every rank must keep its store until all are done.
Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys);

// The rows of a matrix as the gather kernel takes them. The matrix must stay.
class MatrixRows {
 public:
  MatrixRows(Stream& stream, MatrixView<float const> matrix);
  // out.row(i) = matrix.row(numbers[i]); numbers are on the host. Waits for `stream`.
  void gather(Stream& stream, std::vector<std::uint32_t> const& numbers, MatrixView<float> out) const;

 private:
  std::size_t stride_;
  Array<float const*> chunks_;
};

}  // namespace gpups::trainer
