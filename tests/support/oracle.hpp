// SPDX-License-Identifier: Apache-2.0
// What kernels should compute, written the slow and plain way: in double or wide integers, with maps and loops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::test {

// For each key, the place of its first occurrence; what equal keys have in common.
std::vector<std::size_t> first_uses(std::vector<Key> const& keys);

// Entries of each row, ascending.
std::vector<std::vector<std::uint32_t>> entries_of_rows(std::vector<std::uint32_t> const& positions, std::size_t rows);

// floor(c * x / 2^grid_log2) of finite numbers, by integer arithmetic on their digits; nothing where it is outside
// int64, or c or x is not finite.
std::optional<std::int64_t> grid_floor(float c, float x, int grid_log2);

// The exact sum; nothing where a contribution or the sum is not in int64.
struct Product {
  float coefficient, source;
};
std::optional<std::int64_t> exact_sum(std::vector<Product> const& products, int grid_log2);

// One step of an optimizer on a row, in double.
struct RowState {
  std::vector<double> value, state;
  int updates = 0;  // before this one
};
void optimizer_step(Optimizer const& optimizer, double rate, std::vector<double> gradient, RowState& row);

// The initial value of a column, in double.
double initial_value(Initializer const& initializer, std::uint64_t seed, Key key, std::size_t column);

}  // namespace gpups::test
