// SPDX-License-Identifier: Apache-2.0
// Exact sums of dense gradients: each element of a microbatch's gradient is rounded down to a grid and summed as an
// integer, so the order of additions does not change the sum. Reads 4 bytes per parameter and part, writes 8 bytes per
// parameter.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// sums[j] = sum over the rows i of parts of floor(parts[i][j] / 2^grid_log2).
struct SumParts {
  MatrixView<float const> parts;  // (p, n), n < 2^32 - 1
  int grid_log2;                  // -200 .. 200
  View<std::int64_t> sums;        // (n)
  // (1), kNoRow before the call. The call sets it to the smallest j that has a part that is not finite or outside
  // int64, or whose sum is outside int64; the sums of these j are undefined.
  View<std::uint32_t> bad_element;
};
void sum_parts(Stream& stream, SumParts const& arguments);

// mark[0] = 1 if a part of any call of sum_parts() could not be summed, else 0.
struct MarkBad {
  View<std::uint32_t const> bad_elements;  // (n), of n calls
  View<std::int64_t> mark;                 // (1)
};
void mark_bad(Stream& stream, MarkBad const& arguments);

}  // namespace gpups::kernels
