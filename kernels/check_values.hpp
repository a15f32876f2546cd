// SPDX-License-Identifier: Apache-2.0
// Whether all elements of some rows are finite, and can be kept as a table keeps them. Reads each once.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"

namespace gpups::kernels {

// The largest float whose nearest number of this type is finite.
float largest_kept(DataType type);

struct CheckValues {
  MatrixView<float const> rows;  // (n, columns)
  float limit;                   // elements should be from -limit to limit
  View<std::uint32_t> bad_row;   // (1): the first row with another element, NaN included, or kNoRow
};
void check_values(Stream& stream, CheckValues const& arguments);

}  // namespace gpups::kernels
