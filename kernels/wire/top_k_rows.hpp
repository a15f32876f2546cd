// SPDX-License-Identifier: Apache-2.0
// The k elements of each row that are largest by magnitude, and what is left of the rows, exactly; likewise for
// slices of a long vector. A row stays in a core's caches, or a team's, while its threshold is searched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Of each row of x = values + residual, floats, keeps the min(k, dim) of largest magnitude; of equal ones those of
// lower column. After the call residual = x, and 0 where x was kept.
struct TopKRows {
  MatrixView<float const> values;   // (n, dim), dim < 2^32
  MatrixView<float> residual = {};  // (n, dim), or without rows: x = values
  std::size_t k;                    // at least 1
  View<std::uint32_t> columns;      // (n, min(k, dim)), ascending in each row
  View<float> kept;                 // (n, min(k, dim)), x of these
  View<float> thresholds = {};      // (n), or empty: a magnitude for each row that the kept elements reach, and others
                                    // only if equal to it. What is there before is where the search begins: that of
                                    // a similar row saves a third of the time, and none changes the result
};
void top_k_rows(Stream& stream, TopKRows const& arguments);

}  // namespace gpups::kernels
