// SPDX-License-Identifier: Apache-2.0
// Alternating least squares for implicit feedback: Gramians, and the rows that fit best.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Gramians of rows: the sums of their outer products with themselves. Costs n * dim^2 multiply-adds.

// The rows of a block, which has its own sum. Sums are in the order of rows, so the split of the work does not change
// their bits.
inline constexpr std::size_t kGramianRows = 1024;
// Returns the number of blocks.
constexpr std::size_t gramian_blocks(std::size_t rows) { return (rows + kGramianRows - 1) / kGramianRows; }

struct Gramian {
  MatrixView<float const> rows;  // (n, dim)
  MatrixView<float> out;         // (gramian_blocks(n) * dim or more, dim): one after the other
};
void gramian(Stream& stream, Gramian const& arguments);

// One half of a sweep of alternating least squares for implicit feedback (Hu et al. 2008; iALS, Rendle et al. 2022):
// finds the rows of one side, users or items, that fit the rows of the other side best.
//
// Solves each row's linear system by conjugate gradients, which begin at the current row, so that no matrix of a row is
// formed (Takacs et al. 2011). An iteration costs 2 * dim multiply-adds for each of the row's interactions, and dim^2.
inline constexpr int kSolveIterationsMax = 16;
// The relative tolerance, of squared norms of the residual.
inline constexpr float kSolveTolerance = 1e-8F;

// With v the rows of its interactions and n their number, a row is the x for which
//   sum of (1 - <v, x>)^2 + <x, gramian x> + l2 * (n + unobserved) * <x, x>
// is least.
struct SolveRows {
  MatrixView<float const> rows;            // (any, dim): the current rows of this side
  View<std::uint32_t const> solved;        // (n): which of them are solved, distinct
  MatrixView<float const> others;          // (any, dim): rows of the other side
  View<std::uint32_t const> interactions;  // which of these are in interactions, solved row by solved row
  View<std::uint32_t const> offsets;       // (n + 1), into `interactions`
  MatrixView<float const> gramian;         // (dim, dim): of all rows of the other side, times the weight of a pair
  float unobserved;                        // the number of all rows of the other side, times the same weight
  float l2;
  float factor;               // of `changes`
  MatrixView<float> changes;  // (n, dim): factor * (the current row - the new row)
  MatrixView<float> scratch;  // (solve_scratch_rows(n), dim)
  View<std::int64_t> losses;  // (n): the minimum divided by the row's interactions, in units of kLossUnit
};
constexpr std::size_t solve_scratch_rows(std::size_t rows) { return 3 * rows; }
void solve_rows(Stream& stream, SolveRows const& arguments);

}  // namespace gpups::kernels
