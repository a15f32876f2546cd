// SPDX-License-Identifier: Apache-2.0
// Does one step of the optimizer for the rows of a batch (see Optimizer for the formulas), of many tables at once. Each
// exact sum is converted to float once. Moves 16 * dim bytes per row, or 12 * dim for values of 16 bits, and 8 bytes
// more per float of state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Returns the number of floats of optimizer state of a row, which is the stride of its column.
std::size_t state_columns(Optimizer const& optimizer, std::size_t dim);
// Returns how many of them, the first ones, begin with initial_accumulator; the others begin with 0.
std::size_t accumulator_columns(Optimizer const& optimizer, std::size_t dim);

struct UpdateRows {
  View<std::uint32_t const> ids;        // (n), distinct
  MatrixView<std::int64_t const> sums;  // (>= n, dim), stride row_stride(dim)
  WritableRows values;                  // stride row_stride(dim, type); padding is zero and stays zero
  Rows<float> state;                    // stride state_columns(optimizer, dim); unused if that is 0
  Rows<std::uint32_t> lifecycle;        // stride kLifecycleWords
  std::size_t dim;
  int grid_log2;
  double scale;  // gradient = float(sum * 2^grid_log2 * scale): 1 / samples of the step
  Optimizer optimizer;
  float rate;                     // the learning rate of this step
  std::uint32_t step;             // low half of the number of this step
  std::uint32_t admission_count;  // rows with fewer occurrences are not updated; 1: all are
  View<std::uint32_t> bad_row;    // (1), kNoRow before the call; after it the smallest id whose gradient or new
                                  // value is not finite, if there is one; that row is written too
  // The arguments of stochastic rounding of new values of 16 bits; unused for floats.
  Rows<std::uint64_t const> keys{};  // stride 1
  std::uint64_t rounding_seed = 0;   // of the table
  // (1), the number of rows: the first elements of `ids` and `sums`. Empty: all of `ids`.
  View<std::uint32_t const> count{};
  View<std::uint32_t const> positions{};  // (n) or empty: the sums of row i are sums[positions[i]]

  GPUPS_FN std::int64_t const* sums_of(std::size_t i) const { return sums.row(positions.empty() ? i : positions[i]); }
};
// Updates the rows of many tables. On a GPU, the tables with the same kind of optimizer and the same data type share a
// launch. REQUIRES: no two tables have a row in common.
void update_rows(Stream& stream, std::span<UpdateRows const> tables);
inline void update_rows(Stream& stream, UpdateRows const& table) { update_rows(stream, {&table, 1}); }

}  // namespace gpups::kernels
