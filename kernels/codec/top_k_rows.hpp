// SPDX-License-Identifier: Apache-2.0
// Selects the k elements of each row with the largest magnitudes, exactly, and computes the residual. Also for the
// buckets of a long vector. A row stays in the caches of a core, or of a team, during the search for its threshold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Selects the min(k, dim) elements of each row of x = values + residual, floats, with the largest magnitudes; of equal
// magnitudes those with lower columns. After the call residual = x, and 0 at the selected elements.
struct TopKRows {
  MatrixView<float const> values;   // (n, dim), dim < 2^32
  MatrixView<float> residual = {};  // (n, dim), or without rows: x = values
  std::size_t k;                    // at least 1
  View<std::uint32_t> columns;      // (n, min(k, dim)), ascending in each row
  View<float> kept;                 // (n, min(k, dim)), x at these columns
  // (n), or empty: a magnitude for each row that all selected elements reach, and other elements only if they are equal
  // to it. The search starts from its previous value: that of a similar row saves a third of the time. The result does
  // not depend on it.
  View<float> thresholds = {};
};
void top_k_rows(Stream& stream, TopKRows const& arguments);

}  // namespace gpups::kernels
