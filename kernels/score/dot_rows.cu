// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/dot_rows.hpp"

#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/score/dot_rows_host.hpp"

namespace gpups::kernels {

// Rows of `left` and of `right` that a team takes at once.
inline constexpr std::size_t kLeftRows = 8;
inline constexpr std::size_t kRightRows = kLanes;

template <Space S>
void run(Exec<S> ex, DotRows const& g) {
#ifndef __CUDACC__
  if (g.left.columns() >= kVector) return dot_rows_on_host(ex, g);
#endif
  std::size_t const n = g.out.rows(), m = g.out.columns(), panels = (m + kRightRows - 1) / kRightRows;
  each_row(ex, (n + kLeftRows - 1) / kLeftRows * panels, [g, n, m, panels] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const first_left = i / panels * kLeftRows, first_right = i % panels * kRightRows;
    std::size_t const left_rows = n - first_left < kLeftRows ? n - first_left : kLeftRows;
    std::size_t const right_rows = m - first_right < kRightRows ? m - first_right : kRightRows;
    std::size_t const dim = g.left.columns();
    lanes.each(right_rows, [=](std::size_t lane) {
      float const* const right = g.right.row(first_right + lane);
      float sums[kLeftRows] = {};
      for (std::size_t k = 0; k < dim; ++k) {
        float const factor = right[k];
        for (std::size_t row = 0; row < kLeftRows; ++row) {
          std::size_t const at = first_left + (row < left_rows ? row : 0);
          sums[row] = fmaf(g.left.row(at)[k], factor, sums[row]);
        }
      }
      for (std::size_t row = 0; row < left_rows; ++row) g.out.row(first_left + row)[first_right + lane] = sums[row];
    });
  });
}

GPUPS_KERNEL(dot_rows, DotRows)

}  // namespace gpups::kernels
