// SPDX-License-Identifier: Apache-2.0
// Exact sums of gradients. Contributions are rounded down to a grid once and summed as integers, so sums do not depend
// on their order. Reads 4 * stride + 12 bytes per entry, writes 8 * stride per row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// sums[r][j] = sum over the entries e of row r of floor(coefficient[e] * source[e][j] / 2^grid_log2). The
// product is exact.
struct SumGradients {
  View<std::uint32_t const> offsets;  // (rows + 1), row r has the entries order[offsets[r] .. offsets[r + 1])
  View<std::uint32_t const> order;    // (n)
  // (n), the row of source_rows of each entry; empty: entry e has source e. REQUIRES, on the host: each is below
  // source_rows.rows(). On a GPU, an index above that makes the sums of its row undefined.
  View<std::uint32_t const> sources;
  MatrixView<float const> source_rows;  // (number of sources, dim)
  View<float const> coefficients;       // (n); empty: all 1
  int grid_log2;                        // -200 .. 200
  MatrixView<std::int64_t> sums;        // (>= rows, dim), stride row_stride(dim); padding is set to 0
  // (1), kNoRow before the call; after it the smallest row that has a contribution that is not finite or outside int64,
  // or a sum outside int64, if there is one. The sums of such a row are undefined.
  View<std::uint32_t> bad_row;
  // A bound of the magnitude of all contributions, in units of the grid; infinity: not known. If it shows that the sums
  // of a row stay small, the host does not check each addition.
  double contribution_max = std::numeric_limits<double>::infinity();
};
// Sums the gradients of many tables, on a GPU in three launches at most. REQUIRES: no two parts write the same sums.
void sum_gradients(Stream& stream, std::span<SumGradients const> parts);
inline void sum_gradients(Stream& stream, SumGradients const& part) { sum_gradients(stream, {&part, 1}); }

}  // namespace gpups::kernels
