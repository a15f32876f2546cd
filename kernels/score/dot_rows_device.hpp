// SPDX-License-Identifier: Apache-2.0
// The GPU's path of dot_rows: a block of threads for each tile. Only for dot_rows.cu.
#pragma once

#include "kernels/score/dot_rows.hpp"
#include "kernels/score/dot_tile.hpp"

namespace gpups::kernels {

__device__ inline void dot_tile(DotRows const& g, std::size_t first_left, std::size_t first_right) {
  __shared__ DotStage stages[2];
  std::size_t const n = g.out.rows(), m = g.out.columns(), dim = g.left.columns();
  std::size_t const left_rows = n - first_left < kDotTile ? n - first_left : kDotTile;
  std::size_t const right_rows = m - first_right < kDotTile ? m - first_right : kDotTile;
  DotTileThread thread(threadIdx.x, dim);
  __syncthreads();  // the tile before has read its last stage
  thread.load({g.left}, first_left, left_rows, g.right, first_right, right_rows, 0);
  for (std::size_t k = 0; k < dim; k += kDotDepth) {
    DotStage& stage = stages[k / kDotDepth % 2];
    thread.put(stage);
    __syncthreads();
    if (k + kDotDepth < dim)
      thread.load({g.left}, first_left, left_rows, g.right, first_right, right_rows, k + kDotDepth);
    thread.multiply(stage, dim - k < kDotDepth ? dim - k : kDotDepth);
  }
  thread.write(g.out, first_left, first_right);
}

inline void dot_rows_on(DeviceExec ex, DotRows const& g) {
  std::size_t const down = (g.out.rows() + kDotTile - 1) / kDotTile;
  std::size_t const across = (g.out.columns() + kDotTile - 1) / kDotTile;
  // Blocks at work together share right rows: there are more of them, and they are read from memory once.
  each_block<kDotThreads>(ex, down * across,
                          [g, down] GPUPS_FN(std::size_t i) { dot_tile(g, i % down * kDotTile, i / down * kDotTile); });
}

}  // namespace gpups::kernels
