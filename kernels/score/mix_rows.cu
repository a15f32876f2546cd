// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/mix_rows.hpp"

#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/score/mix_rows_host.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, MixRows const& g) {
#ifndef __CUDACC__
  if (g.out.columns() >= kVector) return mix_rows_on_host(ex, g);
#endif
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float* const out = g.out.row(i);
    lanes.each(row_stride(g.out.columns()), [=](std::size_t k) {
      float sum = 0.0F;
      for (std::size_t j = 0; j < g.count; ++j) {
        sum = fmaf(g.weights[i * g.row_step + j * g.column_step], g.rows.row(j)[k], sum);
      }
      out[k] = sum;
    });
  });
}

GPUPS_KERNEL(mix_rows, MixRows)

}  // namespace gpups::kernels
