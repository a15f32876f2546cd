// SPDX-License-Identifier: Apache-2.0
// Gramians of rows: the sums of their outer products with themselves. Costs n * dim^2 multiply-adds.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels
