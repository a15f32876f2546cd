// SPDX-License-Identifier: Apache-2.0
// Rows of numbers that have come from other ranks, as floats and in the order of a batch. Moves 8 bytes per number, or
// 6.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::kernels {

// out.row(places[i]) = row i, and zeros to the padding.
struct ScatterNumbers {
  NumberView from;                      // (n, dim)
  View<std::uint32_t const> positions;  // (n), distinct
  MatrixView<float> out;                // (.., dim), stride row_stride(dim)
};
void scatter_numbers(Stream& stream, ScatterNumbers const& arguments);

}  // namespace gpups::kernels
