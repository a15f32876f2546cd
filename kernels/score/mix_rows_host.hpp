// SPDX-License-Identifier: Apache-2.0
// The host's fast path of mix_rows: tiles of six sums by up to four vectors stay in registers. Only for mix_rows.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/score/mix_rows.hpp"
#include "kernels/score/vector.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kMixRows = 6;
inline constexpr std::size_t kMixVectors = 4;
// Rows of `out` that one thread makes together, from so many rows at a time that these stay in the first cache.
inline constexpr std::size_t kMixBlock = 8 * kMixRows;
inline constexpr std::size_t kMixDepth = 128;

// The part of a sum that is made at a time: vectors from column k, of rows first .. last-1.
struct MixPart {
  std::size_t k, first, last;
};

// R rows of out from row i, C vectors: adds the part's rows to what is there, or to zero at the beginning.
template <std::size_t R, std::size_t C>
void mix_tile(MixRows const& g, std::size_t i, MixPart part) {
  Vector sum[R][C];
  float const* weight[R];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < R; ++r) {
    weight[r] = g.weights + (i + r) * g.row_step;
    float const* const before = g.out.row(i + r) + part.k;
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) sum[r][c] = part.first > 0 ? load<Vector>(before + c * kVector) : Vector{};
  }
  for (std::size_t j = part.first; j < part.last; ++j) {
    float const* const row = g.rows.row(j) + part.k;
    std::size_t const at = j * g.column_step;
    Vector v[C];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) v[c] = load<Vector>(row + c * kVector);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < R; ++r) {
      float const w = weight[r][at];
#pragma GCC unroll 4
      for (std::size_t c = 0; c < C; ++c) sum[r][c] += w * v[c];
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) store(g.out.row(i + r) + part.k + c * kVector, sum[r][c]);
  }
}

// Rows i .. last-1 of out.
template <std::size_t C>
void mix_block(MixRows const& g, std::size_t i, std::size_t last, MixPart part) {
  for (; i + kMixRows <= last; i += kMixRows) mix_tile<kMixRows, C>(g, i, part);
  for (; i < last; ++i) mix_tile<1, C>(g, i, part);
}

// REQUIRES: a row's stride is a multiple of kVector.
inline void mix_rows_on_host(HostExec ex, MixRows const& g) {
  std::size_t const n = g.out.rows(), stride = row_stride(g.out.columns());
  ex.arena->blocks((n + kMixBlock - 1) / kMixBlock, [&](std::size_t block) {
    std::size_t const i = block * kMixBlock, last_row = std::min(i + kMixBlock, n);
    for (std::size_t k = 0; k < stride; k += kMixVectors * kVector) {
      for (std::size_t first = 0; first == 0 || first < g.count; first += kMixDepth) {
        MixPart const part{k, first, std::min(first + kMixDepth, g.count)};
        switch (std::min(kMixVectors, (stride - k) / kVector)) {
          case 1:
            mix_block<1>(g, i, last_row, part);
            break;
          case 2:
            mix_block<2>(g, i, last_row, part);
            break;
          case 3:
            mix_block<3>(g, i, last_row, part);
            break;
          default:
            mix_block<kMixVectors>(g, i, last_row, part);
        }
      }
    }
  });
}

}  // namespace gpups::kernels

#endif
