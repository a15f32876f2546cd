// SPDX-License-Identifier: Apache-2.0
// Computes a number for each pair of rows on the host. Panels of right rows are transposed, so that their pairs
// with one left row are two vectors; several left rows are computed at a time. Only for pair_rows.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/score/pairs.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kPanel = 2 * kVector;
inline constexpr std::size_t kTileRows = kVector == 8 ? 6 : 8;  // AVX2 has 16 registers

// Writes columns first .. first + kVector - 1 of right rows to a panel: panel[k * kPanel + row]. Missing rows are zero;
// padding columns are read but not written.
inline void pack_columns(PickedRows const& right, std::size_t first_row, std::size_t rows, std::size_t first,
                         float* panel) {
  Vector v[kVector] = {};
  std::size_t const columns = std::min(kVector, right.rows.columns() - first);
  for (std::size_t row = 0; row < rows; ++row) v[row] = load<Vector>(right.row(first_row + row) + first);
  transpose(v);
  for (std::size_t k = 0; k < columns; ++k) store(panel + (first + k) * kPanel, v[k]);
}

// Computes the pairs of R left rows, which are `stride` apart, with a panel.
template <std::size_t R, class Pair>
void pair_tile(Pair pair, float const* left, std::size_t stride, float const* panel, std::size_t dim,
               Vector (*results)[2]) {
  using One = typename Pair::template Number<float>;
  using Many = typename Pair::template Number<Vector>;
  Vector sum[R][2];
  float const* row[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
    row[r] = left + r * stride;
    sum[r][0] = sum[r][1] = Vector{};
  }
  std::size_t const count = One::count(dim);
  for (std::size_t k = 0; k < count; ++k) {
    Many const a = Many::at(panel, k * kPanel, count * kPanel);
    Many const b = Many::at(panel + kVector, k * kPanel, count * kPanel);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      One const x = One::at(row[r], k, count);
      sum[r][0] = pair.add(sum[r][0], x, a);
      sum[r][1] = pair.add(sum[r][1], x, b);
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
    results[r][0] = pair.result(sum[r][0]);
    results[r][1] = pair.result(sum[r][1]);
  }
}

// The same for 1 to kTileRows rows.
template <std::size_t R = kTileRows, class Pair>
void pair_tile(Pair pair, std::size_t rows, float const* left, std::size_t stride, float const* panel, std::size_t dim,
               Vector (*results)[2]) {
  if constexpr (R > 1) {
    if (rows < R) return pair_tile<R - 1>(pair, rows, left, stride, panel, dim, results);
  }
  pair_tile<R>(pair, left, stride, panel, dim, results);
}

// For short rows, which may end within a vector.
template <class Pair>
void pair_narrow_rows(HostExec ex, Pair pair, MatrixView<float const> left, PickedRows right, MatrixView<float> out) {
  using N = typename Pair::template Number<float>;
  std::size_t const m = out.columns(), count = N::count(left.columns());
  each(ex, out.rows() * m, [&](std::size_t e) {
    float const *const a = left.row(e / m), *const b = right.row(e % m);
    float sum = 0.0F;
    for (std::size_t k = 0; k < count; ++k) sum = pair.add(sum, N::at(a, k, count), N::at(b, k, count));
    out.row(e / m)[e % m] = pair.result(sum);
  });
}

// out(i, j) = the result of `pair` for left.row(i) and right.row(j).
template <class Pair>
void pair_rows(HostExec ex, Pair pair, MatrixView<float const> left, PickedRows right, MatrixView<float> out) {
  if (left.columns() < kLanes) return pair_narrow_rows(ex, pair, left, right, out);
  std::size_t const n = out.rows(), m = out.columns(), dim = left.columns();
  ex.arena->blocks((m + kPanel - 1) / kPanel, [&](std::size_t block) {
    Array<float> const panel(Device::host(), dim * kPanel);
    std::size_t const first = block * kPanel, count = std::min(kPanel, m - first);
    for (std::size_t k = 0; k < dim; k += kVector) {
      pack_columns(right, first, std::min(kVector, count), k, panel.data());
      pack_columns(right, first + kVector, count - std::min(kVector, count), k, panel.data() + kVector);
    }
    for (std::size_t i = 0; i < n; i += kTileRows) {
      Vector results[kTileRows][2];
      std::size_t const rows = std::min(kTileRows, n - i);
      pair_tile(pair, rows, left.row(i), left.stride(), panel.data(), dim, results);
      for (std::size_t r = 0; r < rows; ++r)
        __builtin_memcpy(out.row(i + r) + first, results[r], count * sizeof(float));
    }
  });
}

}  // namespace gpups::kernels

#endif
