// SPDX-License-Identifier: Apache-2.0
// Writes rows by number: rows(ids[i]) = from.row(i), rounded to the nearest numbers of the rows' data type; padding is
// set to zero. Moves 8 * dim + 4 bytes per row, or 6 * dim + 4 for numbers of 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/number_type.hpp"

namespace gpups::kernels {

struct Scatter {
  MatrixView<float const> from;   // (>= n, >= dim)
  View<std::uint32_t const> ids;  // (n), distinct numbers of existing rows, or kNoRow: nothing is written
  WritableRows rows;              // stride >= dim
  std::size_t dim;
};
void scatter(Stream& stream, Scatter const& arguments);

}  // namespace gpups::kernels
