// SPDX-License-Identifier: Apache-2.0
// Computes the sum or mean of the rows of each bag, weighted or not, in float, in the order of the entries; zeros for
// an empty bag. Reads 4 * stride + 4 bytes per entry, 4 more with coefficients, and writes 4 * stride bytes per bag;
// targets take 4 bytes per bag.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct GatherPooled {
  MatrixView<float const> rows;         // (rows, dim)
  View<std::uint32_t const> positions;  // (entries), each < rows
  // (bags + 1): bag b has the entries offsets[b] .. offsets[b + 1] - 1; empty: entry b is bag b.
  View<std::uint32_t const> offsets;
  bool mean;              // else the sum
  MatrixView<float> out;  // (>= bags, dim), the same stride
  // (entries), factors of the rows; empty: all 1. The mean is the sum divided by the number of entries.
  View<float const> coefficients{};
  View<std::uint32_t const> targets{};  // (bags), distinct: bag b is row targets[b] of out; empty: row b
};
void gather_pooled(Stream& stream, GatherPooled const& arguments);

}  // namespace gpups::kernels
