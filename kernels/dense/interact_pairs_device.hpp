// SPDX-License-Identifier: Apache-2.0
// interact_pairs on a GPU: one thread for each element of the result. The vectors of a sample are read many times, from
// the caches. Only for interact_pairs.cu.
#pragma once

#include <cmath>

#include "kernels/dense/interact_pairs.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Returns the index of pair (row, column), column < row, among the pairs of a sample.
__device__ inline std::size_t place_of_pair(std::size_t row, std::size_t column) {
  return row * (row - 1) / 2 + column;
}
// Returns the row of the pair with this index.
__device__ inline std::size_t row_of_pair(std::size_t place) {
  auto row = static_cast<std::size_t>((1 + sqrtf(1 + 8 * static_cast<float>(place))) / 2);
  while (row * (row - 1) / 2 > place) --row;
  while (row * (row + 1) / 2 <= place) ++row;
  return row;
}

inline void interact(DeviceExec ex, InteractPairsForward const& g) {
  std::size_t const width = g.out.stride();
  each(ex, g.rows.rows() * width, [g, width] GPUPS_FN(std::size_t e) {
    std::size_t const i = e / width, k = e % width, stride = row_stride(g.dim);
    float const* const vectors = g.rows.row(i);
    float out = 0;
    if (k < g.dim) {
      out = vectors[k];
    } else if (k >= stride && k < interact_pairs_columns(g.slots, g.dim)) {
      std::size_t const row = row_of_pair(k - stride);
      float const* const left = vectors + row * stride;
      float const* const right = vectors + (k - stride - place_of_pair(row, 0)) * stride;
      for (std::size_t d = 0; d < g.dim; ++d) out += left[d] * right[d];
    }
    g.out.row(i)[k] = out;
  });
}

inline void interact(DeviceExec ex, InteractPairsBackward const& g) {
  std::size_t const stride = row_stride(g.dim), width = g.slots * stride;
  each(ex, g.rows.rows() * width, [g, stride, width] GPUPS_FN(std::size_t e) {
    std::size_t const i = e / width, f = e % width / stride, k = e % stride;
    float const* const gradient = g.out_gradient.row(i);
    float const* const pairs = gradient + stride;
    float const* const column = g.rows.row(i) + k;
    float sum = f == 0 && k < g.dim ? gradient[k] : 0;
    for (std::size_t other = 0; k < g.dim && other < g.slots; ++other) {
      if (other == f) continue;
      sum += pairs[f > other ? place_of_pair(f, other) : place_of_pair(other, f)] * column[other * stride];
    }
    g.rows_gradient.row(i)[f * stride + k] = sum;
  });
}

}  // namespace gpups::kernels
