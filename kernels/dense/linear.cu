// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/linear.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/dense/linear_device.hpp"
#else
#include "kernels/dense/linear_host.hpp"
#endif

namespace gpups::kernels {

// The forward pass of a layer without inputs; the libraries reject products with an empty dimension.
template <Space S>
void forward_bias(Exec<S> ex, LinearForward const& g) {
  std::size_t const outputs = g.out.columns();
  each(ex, g.out.rows() * outputs, [g, outputs] GPUPS_FN(std::size_t e) {
    float const x = g.bias.empty() ? 0.0F : g.bias[e % outputs];
    g.out.row(e / outputs)[e % outputs] = g.relu && x < 0.0F ? 0.0F : x;
  });
}

template <Space S>
void run(Exec<S> ex, LinearForward const& g) {
  GPUPS_ASSERT(g.in.rows() == g.out.rows() && g.in.columns() == g.weights.columns());
  GPUPS_ASSERT(g.weights.rows() == g.out.columns() && g.out.columns() > 0);
  GPUPS_ASSERT(g.bias.empty() || g.bias.size() == g.out.columns());
  g.in.columns() == 0 ? forward_bias(ex, g) : forward(ex, g);
}

template <Space S>
void run(Exec<S> ex, LinearBackward const& g) {
  GPUPS_ASSERT(g.in.rows() == g.out_gradient.rows() && g.in.columns() == g.weights.columns());
  GPUPS_ASSERT(g.weights.rows() == g.out_gradient.columns() && g.weights.rows() > 0);
  GPUPS_ASSERT(g.weights_gradient.rows() == g.weights.rows() && g.weights_gradient.columns() == g.weights.columns());
  GPUPS_ASSERT(g.bias_gradient.empty() || g.bias_gradient.size() == g.weights.rows());
  GPUPS_ASSERT(!g.relu || g.out.rows() == g.in.rows());
  backward(ex, g);
}

GPUPS_KERNEL(linear_forward, LinearForward)
GPUPS_KERNEL(linear_backward, LinearBackward)

}  // namespace gpups::kernels
