// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/mix_rows.hpp"

#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/score/mix_rows_host.hpp"

namespace gpups::kernels {

// Rows of `out` that a team makes at once, of kLanes columns each.
inline constexpr std::size_t kTeamRows = 4;

template <Space S>
void run(Exec<S> ex, MixRows const& g) {
#ifndef __CUDACC__
  if (g.out.columns() >= kVector) return mix_rows_on_host(ex, g);
#endif
  std::size_t const n = g.out.rows(), stride = row_stride(g.out.columns()), groups = (stride + kLanes - 1) / kLanes;
  each_row(ex, (n + kTeamRows - 1) / kTeamRows * groups,
           [g, n, stride, groups] GPUPS_FN(std::size_t i, NativeLanes lanes) {
             std::size_t const first_row = i / groups * kTeamRows, first = i % groups * kLanes;
             std::size_t const rows = n - first_row < kTeamRows ? n - first_row : kTeamRows;
             std::size_t const columns = stride - first < kLanes ? stride - first : kLanes;
             lanes.each(columns, [=](std::size_t lane) {
               float sums[kTeamRows] = {};
               for (std::size_t j = 0; j < g.count; ++j) {
                 float const factor = g.rows.row(j)[first + lane];
                 for (std::size_t row = 0; row < kTeamRows; ++row) {
                   std::size_t const at = first_row + (row < rows ? row : 0);
                   sums[row] = fmaf(g.weights[at * g.row_step + j * g.column_step], factor, sums[row]);
                 }
               }
               for (std::size_t row = 0; row < rows; ++row) g.out.row(first_row + row)[first + lane] = sums[row];
             });
           });
}

GPUPS_KERNEL(mix_rows, MixRows)

}  // namespace gpups::kernels
