// SPDX-License-Identifier: Apache-2.0
// Writes the initial values of rows: a pure function of (seed, key, column), rounded to the nearest number of the data
// type. Writes each row once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Writes the initial value and state of rows. Padding is set to zero.
struct InitRows {
  View<std::uint32_t const> ids;  // (n), distinct
  View<Key const> keys;           // (n); empty: the keys are key_of_id
  WritableRows values;            // stride >= dim
  Rows<float> state;              // stride state_columns; unused if that is 0
  std::size_t dim;
  std::size_t state_columns;
  Initializer initializer;
  std::size_t accumulators;  // number of first state columns that begin with initial_accumulator; others: 0
  float initial_accumulator;
  std::uint64_t seed;                     // of the table
  Rows<std::uint64_t const> key_of_id{};  // stride 1: the keys of rows, by number
};
// Writes the rows of many tables. On a GPU, the tables of one data type share a launch. REQUIRES: no two tables have a
// row in common.
void init_rows(Stream& stream, std::span<InitRows const> tables);
inline void init_rows(Stream& stream, InitRows const& table) { init_rows(stream, {&table, 1}); }

// Writes the same values to a matrix, as floats. A look-up returns them for keys without a row.
struct InitMatrix {
  View<Key const> keys;                         // (n)
  View<std::uint32_t const> only_where_no_row;  // (n): row i is written only if this is kNoRow; empty: all are
  MatrixView<float> out;                        // (>= n, dim); padding is set to zero
  Initializer initializer;
  std::uint64_t seed;                // of the table
  DataType type = DataType::kFloat;  // of the table's values
};
void init_matrix(Stream& stream, InitMatrix const& arguments);

}  // namespace gpups::kernels
