// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/gramian.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/base/vector.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// A team computes a row of a block's sum.
template <Space S>
void run(Exec<S> ex, Gramian const& g) {
  std::size_t const dim = g.rows.columns(), blocks = gramian_blocks(g.rows.rows());
  GPUPS_ASSERT(g.out.rows() >= blocks * dim && g.out.columns() == dim);
  each_row(ex, blocks * dim, [g, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float* const out = g.out.row(i);
    lanes.each(dim, [=](std::size_t j) { out[j] = 0; });
    std::size_t const first = i / dim * kGramianRows, left = g.rows.rows() - first;
    std::size_t const end = first + (left < kGramianRows ? left : kGramianRows);
    for (std::size_t r = first; r < end; ++r) {
      float const* const row = g.rows.row(r);
      float const of_row = row[i % dim];
      lanes.each(dim, [=](std::size_t j) { out[j] = multiply_add(of_row, row[j], out[j]); });
    }
  });
}

GPUPS_KERNEL(gramian, Gramian)

}  // namespace gpups::kernels
