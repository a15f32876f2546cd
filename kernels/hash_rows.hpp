// SPDX-License-Identifier: Apache-2.0
// A digest of a table's rows that does not depend on their order or number of ranks: the sum of a 64-bit hash of each.
// Reads a row's key, value, state and lifecycle once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/number_type.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct HashRows {
  std::size_t rows;                // numbers 0 .. rows - 1; those that do not exist are left out
  Rows<std::uint64_t const> keys;  // stride 1
  TypedRows values;                // (dim); numbers of 16 bits count as the floats that they are
  Rows<float const> state;         // (state_columns)
  std::size_t dim;
  std::size_t state_columns;
  Rows<std::uint32_t const> lifecycle;  // stride kLifecycleWords
  std::uint64_t seed;                   // of the table
  View<std::uint64_t> digest;  // (2): the rows' hashes are added to the first, wrapping, their number to the second
};
void hash_rows(Stream& stream, HashRows const& arguments);

}  // namespace gpups::kernels
