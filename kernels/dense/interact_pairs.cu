// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/interact_pairs.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/dense/interact_pairs_device.hpp"
#else
#include "kernels/dense/interact_pairs_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, InteractPairsForward const& g) {
  GPUPS_ASSERT(g.slots > 0 && g.dim > 0 && g.rows.stride() >= g.slots * row_stride(g.dim));
  GPUPS_ASSERT(g.rows.stride() % 4 == 0);
  GPUPS_ASSERT(g.out.rows() >= g.rows.rows() && g.out.stride() >= interact_pairs_columns(g.slots, g.dim));
  interact(ex, g);
}

template <Space S>
void run(Exec<S> ex, InteractPairsBackward const& g) {
  GPUPS_ASSERT(g.slots > 0 && g.dim > 0 && g.rows.stride() >= g.slots * row_stride(g.dim));
  GPUPS_ASSERT(g.rows.stride() % 4 == 0);
  GPUPS_ASSERT(g.rows_gradient.stride() % 4 == 0 && g.rows_gradient.rows() >= g.rows.rows() &&
               g.rows_gradient.stride() >= g.slots * row_stride(g.dim));
  GPUPS_ASSERT(g.out_gradient.rows() >= g.rows.rows());
  GPUPS_ASSERT(g.out_gradient.stride() >= interact_pairs_columns(g.slots, g.dim));
  interact(ex, g);
}

GPUPS_KERNEL(interact_pairs_forward, InteractPairsForward)
GPUPS_KERNEL(interact_pairs_backward, InteractPairsBackward)

}  // namespace gpups::kernels
