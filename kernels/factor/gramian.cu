// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/gramian.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#include "kernels/vector.hpp"

namespace gpups::kernels {

// A team computes a row of the result.
template <Space S>
void run(Exec<S> ex, Gramian const& g) {
  std::size_t const dim = g.rows.columns();
  GPUPS_ASSERT(g.out.rows() == dim && g.out.columns() == dim);
  each_row(ex, dim, [g, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float* const out = g.out.row(i);
    lanes.each(dim, [=](std::size_t j) { out[j] = 0; });
    for (std::size_t r = 0; r < g.rows.rows(); ++r) {
      float const* const row = g.rows.row(r);
      float const of_row = row[i];
      lanes.each(dim, [=](std::size_t j) { out[j] = multiply_add(of_row, row[j], out[j]); });
    }
  });
}

GPUPS_KERNEL(gramian, Gramian)

}  // namespace gpups::kernels
