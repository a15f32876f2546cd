// SPDX-License-Identifier: Apache-2.0
// Computes a number for each pair of rows on a GPU: a block of threads for each tile. Only for dot_rows.cu and
// distance_rows.cu.
#pragma once

#include "kernels/score/pair_tile.hpp"

namespace gpups::kernels {

// Computes the tile that begins at (first_left, first_right). All threads of the block call it.
template <class Pair>
__device__ void pair_tile(Pair pair, MatrixView<float const> left, PickedRows const& right, MatrixView<float> out,
                          std::size_t first_left, std::size_t first_right) {
  using Thread = PairTileThread<Pair>;
  __shared__ PairStage stages[2];
  std::size_t const n = out.rows(), m = out.columns(), count = Thread::count(left.columns());
  std::size_t const left_rows = n - first_left < kPairTile ? n - first_left : kPairTile;
  std::size_t const right_rows = m - first_right < kPairTile ? m - first_right : kPairTile;
  Thread thread(pair, threadIdx.x, left.columns());
  __syncthreads();  // all threads have read the last stage of the tile before
  thread.load({left}, first_left, left_rows, right, first_right, right_rows, 0);
  for (std::size_t k = 0; k < count; k += Thread::kDepth) {
    PairStage& stage = stages[k / Thread::kDepth % 2];
    thread.put(stage);
    __syncthreads();
    if (k + Thread::kDepth < count)
      thread.load({left}, first_left, left_rows, right, first_right, right_rows, k + Thread::kDepth);
    thread.add(stage, count - k < Thread::kDepth ? count - k : Thread::kDepth);
  }
  thread.write(out, first_left, first_right);
}

// out(i, j) = the result of `pair` for left.row(i) and right.row(j).
template <class Pair>
void pair_rows(DeviceExec ex, Pair pair, MatrixView<float const> left, PickedRows right, MatrixView<float> out) {
  std::size_t const down = (out.rows() + kPairTile - 1) / kPairTile;
  std::size_t const across = (out.columns() + kPairTile - 1) / kPairTile;
  // Concurrent blocks use the same right rows, so that these, which are the larger matrix, are read from memory once.
  each_block<kPairThreads>(ex, down * across, [=] GPUPS_FN(std::size_t i) {
    pair_tile(pair, left, right, out, i % down * kPairTile, i / down * kPairTile);
  });
}

}  // namespace gpups::kernels
