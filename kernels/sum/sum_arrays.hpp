// SPDX-License-Identifier: Apache-2.0
// Adds up arrays of floats, and adds sparse vectors to them.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Adds up arrays of floats element by element, in their order. Moves 4 bytes per element of each array, and 4 per sum.

// sums[i] = ((arrays[0][i] + arrays[1][i]) + arrays[2][i]) + ...
struct SumArrays {
  std::span<View<float const> const> arrays;  // at least one, each (n); the list is on the host
  View<float> sums;                           // (n); may be the first array
};
void sum_arrays(Stream& stream, SumArrays const& arguments);

// Adds a sparse vector to an array. Moves 16 bytes per element of the sparse vector.

// into[indices[i] - first] += values[i]
struct AddElements {
  View<std::uint32_t const> indices;  // (n), distinct; those outside of first .. first + into.size() - 1 are ignored
  View<float const> values;           // (n)
  std::uint64_t first = 0;
  View<float> into;  // (size)
};
void add_elements(Stream& stream, AddElements const& arguments);

}  // namespace gpups::kernels
