// SPDX-License-Identifier: Apache-2.0
// Copies rows of a matrix from or to given positions. Moves 8 * dim + 4 bytes per row.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// to.row(i) = from.row(positions[i]); if `flags_from` is not empty, also flags_to[i] = flags_from[positions[i]].
struct GatherMatrixRows {
  MatrixView<float const> from;
  View<std::uint32_t const> positions;       // (n)
  MatrixView<float> to;                      // (>= n, dim); only the dim columns are written
  View<std::uint8_t const> flags_from = {};  // one per row of `from`, or empty
  View<std::uint8_t> flags_to = {};          // (n), or empty
};
void gather_matrix_rows(Stream& stream, GatherMatrixRows const& arguments);

// to.row(positions[i]) = from.row(i); padding is set to zero.
struct ScatterMatrixRows {
  MatrixView<float const> from;         // (n, dim)
  View<std::uint32_t const> positions;  // (n), distinct
  MatrixView<float> to;
};
void scatter_matrix_rows(Stream& stream, ScatterMatrixRows const& arguments);

}  // namespace gpups::kernels
