// SPDX-License-Identifier: Apache-2.0
// Checks that all elements of rows are finite, also in the data type of a table. Reads each element once.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"

namespace gpups::kernels {

// Returns the largest float whose nearest number of this data type is finite.
float largest_kept(DataType type);

struct CheckValues {
  MatrixView<float const> rows;  // (n, columns)
  float limit;                   // valid elements are from -limit to limit
  View<std::uint32_t> bad_row;   // (1), output: the first row with an element that is not valid, or NaN; or kNoRow
};
void check_values(Stream& stream, CheckValues const& arguments);

}  // namespace gpups::kernels
