// SPDX-License-Identifier: Apache-2.0
// Computes a digest of the rows of a table that does not depend on their order or on the number of ranks: the sum of a
// 64-bit hash of each row. Reads key, values, state and lifecycle of each row once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

struct HashRows {
  std::size_t rows;                // rows 0 .. rows - 1; those that do not exist are skipped
  Rows<std::uint64_t const> keys;  // stride 1
  TypedRows values;                // (dim); numbers of 16 bits are converted to float
  Rows<float const> state;         // (state_columns)
  std::size_t dim;
  std::size_t state_columns;
  Rows<std::uint32_t const> lifecycle;  // stride kLifecycleWords
  std::uint64_t seed;                   // of the table
  View<std::uint64_t> digest;           // (2), added to: the sum of the hashes, modulo 2^64; the number of rows
};
void hash_rows(Stream& stream, HashRows const& arguments);

}  // namespace gpups::kernels
