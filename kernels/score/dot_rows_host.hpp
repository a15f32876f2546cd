// SPDX-License-Identifier: Apache-2.0
// The host's fast path of dot_rows: panels of 32 right rows, transposed so that 32 dot products with one left row are
// two vectors; eight left rows at a time. Only for dot_rows.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <cmath>

#include "kernels/score/dot_rows.hpp"
#include "kernels/score/vector.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kPanel = 2 * kVector;
inline constexpr std::size_t kTileRows = 8;

// Writes columns first .. first+15 of right rows to a panel: panel[k * kPanel + row]. Missing rows are zero; columns
// of the padding are read and left out.
inline void pack_columns(DotRows const& g, std::size_t first_row, std::size_t rows, std::size_t first, float* panel) {
  Vector v[kVector] = {};
  std::size_t const columns = std::min(kVector, g.left.columns() - first);
  for (std::size_t row = 0; row < rows; ++row) v[row] = load<Vector>(g.right.row(first_row + row) + first);
  transpose(v);
  for (std::size_t k = 0; k < columns; ++k) store(panel + (first + k) * kPanel, v[k]);
}

// R left rows, each `stride` after the last, by a panel.
template <std::size_t R>
void dot_tile(float const* left, std::size_t stride, float const* panel, std::size_t dim, Vector (*sums)[2]) {
  Vector sum[R][2];
  float const* row[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
    row[r] = left + r * stride;
    sum[r][0] = sum[r][1] = Vector{};
  }
  for (std::size_t k = 0; k < dim; ++k) {
    Vector const a = load<Vector>(panel + k * kPanel), b = load<Vector>(panel + k * kPanel + kVector);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      sum[r][0] += row[r][k] * a;
      sum[r][1] += row[r][k] * b;
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
    sums[r][0] = sum[r][0];
    sums[r][1] = sum[r][1];
  }
}

inline void dot_tile(std::size_t rows, float const* left, std::size_t stride, float const* panel, std::size_t dim,
                     Vector (*sums)[2]) {
  switch (rows) {
    case 1:
      return dot_tile<1>(left, stride, panel, dim, sums);
    case 2:
      return dot_tile<2>(left, stride, panel, dim, sums);
    case 3:
      return dot_tile<3>(left, stride, panel, dim, sums);
    case 4:
      return dot_tile<4>(left, stride, panel, dim, sums);
    case 5:
      return dot_tile<5>(left, stride, panel, dim, sums);
    case 6:
      return dot_tile<6>(left, stride, panel, dim, sums);
    case 7:
      return dot_tile<7>(left, stride, panel, dim, sums);
    default:
      return dot_tile<8>(left, stride, panel, dim, sums);
  }
}

// Rows shorter than a vector.
inline void dot_narrow_rows(HostExec ex, DotRows const& g) {
  std::size_t const m = g.out.columns(), dim = g.left.columns();
  each(ex, g.out.rows() * m, [&](std::size_t e) {
    float const *const left = g.left.row(e / m), *const right = g.right.row(e % m);
    float sum = 0.0F;
    for (std::size_t k = 0; k < dim; ++k) sum = fmaf(left[k], right[k], sum);
    g.out.row(e / m)[e % m] = sum;
  });
}

inline void dot_rows_on(HostExec ex, DotRows const& g) {
  if (g.left.columns() < kVector) return dot_narrow_rows(ex, g);
  std::size_t const n = g.out.rows(), m = g.out.columns(), dim = g.left.columns();
  ex.arena->blocks((m + kPanel - 1) / kPanel, [&](std::size_t block) {
    Array<float> const panel(Device::host(), dim * kPanel);
    std::size_t const first = block * kPanel, count = std::min(kPanel, m - first);
    for (std::size_t k = 0; k < dim; k += kVector) {
      pack_columns(g, first, std::min(kVector, count), k, panel.data());
      pack_columns(g, first + kVector, count - std::min(kVector, count), k, panel.data() + kVector);
    }
    for (std::size_t i = 0; i < n; i += kTileRows) {
      Vector sums[kTileRows][2];
      std::size_t const rows = std::min(kTileRows, n - i);
      dot_tile(rows, g.left.row(i), g.left.stride(), panel.data(), dim, sums);
      for (std::size_t r = 0; r < rows; ++r) __builtin_memcpy(g.out.row(i + r) + first, sums[r], count * sizeof(float));
    }
  });
}

}  // namespace gpups::kernels

#endif
