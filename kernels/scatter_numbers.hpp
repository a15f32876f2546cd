// SPDX-License-Identifier: Apache-2.0
// Converts rows that were received from other ranks to floats, in the order of a batch. Moves 8 bytes per number, or 6
// for numbers of 16 bits.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::kernels {

// out.row(positions[i]) = row i of `from`; padding is set to zero.
struct ScatterNumbers {
  NumberView from;                      // (n, dim)
  View<std::uint32_t const> positions;  // (n), distinct
  MatrixView<float> out;                // (.., dim), stride row_stride(dim)
};
void scatter_numbers(Stream& stream, ScatterNumbers const& arguments);

}  // namespace gpups::kernels
