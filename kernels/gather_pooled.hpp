// SPDX-License-Identifier: Apache-2.0
// The sum or mean of the rows of each bag, in float, in the order of its entries; zeros for an empty bag.
// Reads 4 * stride + 4 bytes per entry, writes 4 * stride per bag.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct GatherPooled {
  MatrixView<float const> rows;         // (rows, dim)
  View<std::uint32_t const> positions;  // (entries), each < rows
  View<std::uint32_t const> offsets;    // (bags + 1), bag b has the entries offsets[b] .. offsets[b + 1] - 1
  bool mean;                            // else the sum
  MatrixView<float> out;                // (>= bags, dim), the same stride
};
void gather_pooled(Stream& stream, GatherPooled const& arguments);

}  // namespace gpups::kernels
