// SPDX-License-Identifier: Apache-2.0
// A tile of dot_rows by 128 threads of a GPU: 64 x 64 dot products, of columns that are staged through shared memory 16
// at a time while the next 16 are on their way. Written as what one thread does between barriers, so that a test can
// take the threads' turns on the host.
#pragma once

#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kDotTile = 64;
inline constexpr unsigned kDotThreads = 128;
inline constexpr std::size_t kDotDepth = 16;

struct alignas(16) FourFloats {
  float x, y, z, w;
};

// Columns of the tile's rows; a thread reads four neighbours at once, and its rows are 16 bytes off the banks of the
// rows before.
struct DotStage {
  alignas(16) float left[kDotDepth][kDotTile + 4];
  alignas(16) float right[kDotDepth][kDotTile + 4];
};

// A thread has the sums of four left rows and of twice four right rows.
class DotTileThread {
 public:
  GPUPS_FN DotTileThread(unsigned thread, std::size_t dim) : thread_(thread), stride_(row_stride(dim)) {}

  // Loads columns k .. k + 15, as far as rows are long, of the rows first .. first + count - 1 of both sides.
  GPUPS_FN void load(PickedRows const& left, std::size_t first_left, std::size_t left_rows, PickedRows const& right,
                     std::size_t first_right, std::size_t right_rows, std::size_t k) {
    load(left, first_left, left_rows, k, next_left_);
    load(right, first_right, right_rows, k, next_right_);
  }

  // What was loaded becomes what all threads read, after a barrier.
  GPUPS_FN void put(DotStage& stage) const {
    put(next_left_, stage.left);
    put(next_right_, stage.right);
  }

  // Adds the products of the first `depth` columns of a stage.
  GPUPS_FN void multiply(DotStage const& stage, std::size_t depth) {
#pragma unroll 4
    for (std::size_t k = 0; k < depth; ++k) {
      FourFloats const a = four(stage.left[k] + 4 * row_group());
      FourFloats const b = four(stage.right[k] + 4 * column_group());
      FourFloats const c = four(stage.right[k] + kDotTile / 2 + 4 * column_group());
      add(a.x, b, c, sums_[0]);
      add(a.y, b, c, sums_[1]);
      add(a.z, b, c, sums_[2]);
      add(a.w, b, c, sums_[3]);
    }
  }

  // Writes the thread's sums to the tile of `out` that begins at (first_row, first_column).
  GPUPS_FN void write(MatrixView<float> out, std::size_t first_row, std::size_t first_column) const {
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      std::size_t const row = first_row + 4 * row_group() + r;
      if (row >= out.rows()) return;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        std::size_t const column = first_column + half * kDotTile / 2 + 4 * column_group();
        write(out.row(row), column, out.columns(), sums_[r] + 4 * half);
      }
    }
  }

 private:
  GPUPS_FN unsigned row_group() const { return thread_ / 8; }     // of 16
  GPUPS_FN unsigned column_group() const { return thread_ % 8; }  // of 8, in each half
  GPUPS_FN static FourFloats four(float const* from) { return *reinterpret_cast<FourFloats const*>(from); }

  // Four threads read the 64 bytes of a row.
  GPUPS_FN void load(PickedRows const& rows, std::size_t first, std::size_t count, std::size_t k,
                     FourFloats (&next)[2]) const {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u) {
      std::size_t const row = (thread_ + u * kDotThreads) / 4;
      std::size_t const column = k + thread_ % 4 * 4;
      next[u] = row < count && column < stride_ ? four(rows.row(first + row) + column) : FourFloats{};
    }
  }
  GPUPS_FN void put(FourFloats const (&next)[2], float (&stage)[kDotDepth][kDotTile + 4]) const {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u) {
      std::size_t const row = (thread_ + u * kDotThreads) / 4, k = thread_ % 4 * 4;
      stage[k][row] = next[u].x;
      stage[k + 1][row] = next[u].y;
      stage[k + 2][row] = next[u].z;
      stage[k + 3][row] = next[u].w;
    }
  }
  GPUPS_FN static void add(float a, FourFloats const& b, FourFloats const& c, float (&sums)[8]) {
    sums[0] = fmaf(a, b.x, sums[0]);
    sums[1] = fmaf(a, b.y, sums[1]);
    sums[2] = fmaf(a, b.z, sums[2]);
    sums[3] = fmaf(a, b.w, sums[3]);
    sums[4] = fmaf(a, c.x, sums[4]);
    sums[5] = fmaf(a, c.y, sums[5]);
    sums[6] = fmaf(a, c.z, sums[6]);
    sums[7] = fmaf(a, c.w, sums[7]);
  }
  // Rows of `out` may begin anywhere.
  GPUPS_FN static void write(float* row, std::size_t column, std::size_t columns, float const* sums) {
    float* const to = row + column;
    if (column + 4 <= columns && reinterpret_cast<std::uintptr_t>(to) % sizeof(FourFloats) == 0) {
      *reinterpret_cast<FourFloats*>(to) = {sums[0], sums[1], sums[2], sums[3]};
      return;
    }
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      if (column + c < columns) to[c] = sums[c];
    }
  }

  unsigned thread_;
  std::size_t stride_;
  FourFloats next_left_[2], next_right_[2];
  float sums_[4][8] = {};
};

}  // namespace gpups::kernels
