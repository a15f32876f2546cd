// SPDX-License-Identifier: Apache-2.0
// Computes a number for each pair of rows on a GPU: a block of threads for each tile. Only for
// pair_rows.cu.
#pragma once

#include <cmath>

#include "kernels/base/store_wide.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/pairs.hpp"

namespace gpups::kernels {

// Computes a tile of 64 x 64 numbers for pairs of rows with 128 threads of a GPU. 16 columns at a time are staged in
// shared memory while the next 16 are loaded. The class contains the work of one thread between barriers, so that a
// test can run all threads in turn on the host.
inline constexpr std::size_t kPairTile = 64;
inline constexpr unsigned kPairThreads = 128;
inline constexpr std::size_t kPairColumns = 16;

struct alignas(16) FourFloats {
  float x, y, z, w;
};

// 16 columns of the rows of a tile. A thread reads four adjacent rows at once; the padding shifts each column by 16
// bytes relative to the memory banks. For complex numbers the real parts are the first half of the columns.
struct PairStage {
  alignas(16) float left[kPairColumns][kPairTile + 4];
  alignas(16) float right[kPairColumns][kPairTile + 4];
};

// One thread of a block: it has the sums of four left rows with two groups of four right rows.
template <class Pair>
class PairTileThread {
  using N = typename Pair::template Number<float>;

 public:
  static constexpr std::size_t kDepth = kPairColumns / Pair::kParts;  // numbers of a row in a stage
  GPUPS_FN static std::size_t count(std::size_t dim) { return N::count(dim); }

  GPUPS_FN PairTileThread(Pair pair, unsigned thread, std::size_t dim)
      : pair_(pair), thread_(thread), stride_(row_stride(dim)), count_(N::count(dim)) {}

  // Loads numbers k .. k + kDepth - 1 of the rows first .. first + count - 1 of both sides into registers; those beyond
  // the end of a row are zero.
  GPUPS_FN void load(PickedRows const& left, std::size_t first_left, std::size_t left_rows, PickedRows const& right,
                     std::size_t first_right, std::size_t right_rows, std::size_t k) {
    load(left, first_left, left_rows, k, next_left_);
    load(right, first_right, right_rows, k, next_right_);
  }

  // Stores the loaded numbers in a stage. The other threads can read them after a barrier.
  GPUPS_FN void put(PairStage& stage) const {
    put(next_left_, stage.left);
    put(next_right_, stage.right);
  }

  // Adds the first `depth` numbers of a stage.
  GPUPS_FN void add(PairStage const& stage, std::size_t depth) {
#pragma unroll(4 / Pair::kParts)
    for (std::size_t k = 0; k < depth; ++k) {
      N a[4], b[8];
      four(stage.left, 4 * row_group(), k, a);
      four(stage.right, 4 * column_group(), k, b);
      four(stage.right, kPairTile / 2 + 4 * column_group(), k, b + 4);
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
        for (unsigned c = 0; c < 8; ++c) sums_[r][c] = pair_.add(sums_[r][c], a[r], b[c]);
      }
    }
  }

  // Writes the thread's results to the tile of `out` that begins at (first_row, first_column).
  GPUPS_FN void write(MatrixView<float> out, std::size_t first_row, std::size_t first_column) const {
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      std::size_t const row = first_row + 4 * row_group() + r;
      if (row >= out.rows()) return;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        std::size_t const column = first_column + half * kPairTile / 2 + 4 * column_group();
        write(out.row(row), column, out.columns(), sums_[r] + 4 * half);
      }
    }
  }

 private:
  GPUPS_FN unsigned row_group() const { return thread_ / 8; }     // 0 .. 15
  GPUPS_FN unsigned column_group() const { return thread_ % 8; }  // 0 .. 7, in each half
  GPUPS_FN static FourFloats four(float const* from) { return *reinterpret_cast<FourFloats const*>(from); }

  // Reads number k of four adjacent rows of a stage.
  GPUPS_FN static void four(float const (&stage)[kPairColumns][kPairTile + 4], std::size_t row, std::size_t k, N* to) {
    FourFloats const re = four(stage[k] + row);
    if constexpr (Pair::kParts == 1) {
      to[0] = {re.x}, to[1] = {re.y}, to[2] = {re.z}, to[3] = {re.w};
    } else {
      FourFloats const im = four(stage[kDepth + k] + row);
      to[0] = {re.x, im.x}, to[1] = {re.y, im.y}, to[2] = {re.z, im.z}, to[3] = {re.w, im.w};
    }
  }

  // Four threads read 64 bytes of a row together.
  GPUPS_FN void load(PickedRows const& rows, std::size_t first, std::size_t count, std::size_t k,
                     FourFloats (&next)[2]) const {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u) {
      std::size_t const row = (thread_ + u * kPairThreads) / 4;
      next[u] = row < count ? load(rows.row(first + row), k) : FourFloats{};
    }
  }
  GPUPS_FN FourFloats load(float const* row, std::size_t k) const {
    unsigned const quarter = thread_ % 4;
    if constexpr (Pair::kParts == 1) {
      std::size_t const column = k + quarter * 4;
      return column < stride_ ? four(row + column) : FourFloats{};
    } else {
      std::size_t const number = k + quarter % 2 * 4;
      float const* const from = row + quarter / 2 * count_ + number;
      if (count_ % 4 == 0) return number < count_ ? four(from) : FourFloats{};  // otherwise not aligned
      return {number < count_ ? from[0] : 0.0F, number + 1 < count_ ? from[1] : 0.0F,
              number + 2 < count_ ? from[2] : 0.0F, number + 3 < count_ ? from[3] : 0.0F};
    }
  }

  GPUPS_FN void put(FourFloats const (&next)[2], float (&stage)[kPairColumns][kPairTile + 4]) const {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u) {
      std::size_t const row = (thread_ + u * kPairThreads) / 4, k = thread_ % 4 * 4;
      stage[k][row] = next[u].x;
      stage[k + 1][row] = next[u].y;
      stage[k + 2][row] = next[u].z;
      stage[k + 3][row] = next[u].w;
    }
  }
  // Rows of `out` have no alignment.
  GPUPS_FN void write(float* row, std::size_t column, std::size_t columns, float const* sums) const {
    float* const to = row + column;
#ifdef __CUDACC__
    if (column + 4 <= columns && reinterpret_cast<std::uintptr_t>(to) % sizeof(float4) == 0) {
      return store_wide(
          to, make_float4(pair_.result(sums[0]), pair_.result(sums[1]), pair_.result(sums[2]), pair_.result(sums[3])));
    }
#endif
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      if (column + c < columns) to[c] = pair_.result(sums[c]);
    }
  }

  [[no_unique_address]] Pair pair_;
  unsigned thread_;
  std::size_t stride_, count_;
  FourFloats next_left_[2], next_right_[2];
  float sums_[4][8] = {};
};

#ifdef __CUDACC__
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
#endif

}  // namespace gpups::kernels
