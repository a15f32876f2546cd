// SPDX-License-Identifier: Apache-2.0
// Values of rows that no batch has named yet: a pure function of (seed, key, column), as the nearest number of their
// type. Writes the bytes of a row for each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/number_type.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// Writes the initial value and state of rows. Padding is set to zero.
struct InitRows {
  View<std::uint32_t const> ids;  // (n), distinct
  View<Key const> keys;           // (n)
  WritableRows values;            // stride >= dim
  Rows<float> state;              // stride state_columns; unused where that is 0
  std::size_t dim;
  std::size_t state_columns;
  Initializer initializer;
  std::size_t accumulators;  // the first columns of state, which begin with initial_accumulator; the others with 0
  float initial_accumulator;
  std::uint64_t seed;  // of the table
};
void init_rows(Stream& stream, InitRows const& arguments);

// The same values to a matrix, as floats: what a look-up answers for keys without a row.
struct InitMatrix {
  View<Key const> keys;                         // (n)
  View<std::uint32_t const> only_where_no_row;  // (n), writes row i only where this is kNoRow; empty: all
  MatrixView<float> out;                        // (>= n, dim); padding is set to zero
  Initializer initializer;
  std::uint64_t seed;                // of the table
  DataType type = DataType::kFloat;  // of its values
};
void init_matrix(Stream& stream, InitMatrix const& arguments);

}  // namespace gpups::kernels
