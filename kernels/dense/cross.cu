// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/cross.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CrossForward const& g) {
  GPUPS_ASSERT(g.x0.rows() >= g.out.rows() && g.u.rows() >= g.out.rows() && g.x.rows() >= g.out.rows());
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const *const x0 = g.x0.row(i), *const u = g.u.row(i), *const x = g.x.row(i);
    float* const out = g.out.row(i);
    lanes.each(g.out.columns(), [=](std::size_t j) { out[j] = x0[j] * u[j] + x[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, CrossBackward const& g) {
  std::size_t const m = g.out_gradient.rows();
  GPUPS_ASSERT(g.x0.rows() >= m && g.u.rows() >= m && g.u_gradient.rows() >= m);
  GPUPS_ASSERT(g.x0_gradient.rows() >= m && g.x_gradient.rows() >= m);
  each_row(ex, m, [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const *const x0 = g.x0.row(i), *const u = g.u.row(i), *const gradient = g.out_gradient.row(i);
    float *const of_u = g.u_gradient.row(i), *const of_x0 = g.x0_gradient.row(i), *const of_x = g.x_gradient.row(i);
    lanes.each(g.out_gradient.columns(), [=](std::size_t j) {
      float const by_out = gradient[j];
      of_x0[j] += by_out * u[j];
      of_u[j] = by_out * x0[j];
      of_x[j] = by_out;
    });
  });
}

GPUPS_KERNEL(cross_forward, CrossForward)
GPUPS_KERNEL(cross_backward, CrossBackward)

}  // namespace gpups::kernels
