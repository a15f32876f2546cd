// SPDX-License-Identifier: Apache-2.0
// Simple and slow implementations of kernels, in double or wide integers, with maps and loops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::test {

// Returns the position of the first occurrence of each key.
std::vector<std::size_t> first_uses(std::vector<Key> const& keys);

// Returns the entries of each row, ascending.
std::vector<std::vector<std::uint32_t>> entries_of_rows(std::vector<std::uint32_t> const& positions, std::size_t rows);

// Returns floor(c * x / 2^grid_log2), computed with integer arithmetic; nullopt if it is outside of int64, or c or x is
// not finite.
std::optional<std::int64_t> grid_floor(float c, float x, int grid_log2);

// A contribution to a sum.
struct Product {
  float coefficient, source;
};
// Returns the exact sum of products in units of the grid; nullopt if a contribution or the sum is outside of int64.
std::optional<std::int64_t> exact_sum(std::vector<Product> const& products, int grid_log2);

// A row with its optimizer state, in double.
struct RowState {
  std::vector<double> value, state;
  int updates = 0;  // updates before this step
};
// Computes one step of an optimizer on a row.
void optimizer_step(Optimizer const& optimizer, double rate, std::vector<double> gradient, RowState& row);

// Returns the initial value of a column.
double initial_value(Initializer const& initializer, std::uint64_t seed, Key key, std::size_t column);

}  // namespace gpups::test
