// SPDX-License-Identifier: Apache-2.0
// Adds up arrays of floats element by element, in their order. Moves 4 bytes per element of each array, and 4 per sum.
#pragma once

#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// sums[i] = ((arrays[0][i] + arrays[1][i]) + arrays[2][i]) + ...
struct SumArrays {
  std::span<View<float const> const> arrays;  // at least one, each (n); the list is on the host
  View<float> sums;                           // (n); may be the first array
};
void sum_arrays(Stream& stream, SumArrays const& arguments);

}  // namespace gpups::kernels
