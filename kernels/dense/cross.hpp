// SPDX-License-Identifier: Apache-2.0
// The element-wise part of a cross layer of DCN-v2 (Wang et al.: "DCN V2: improved deep & cross network", WWW 2021):
// out = x0 * u + x, where u = W x + b is the output of a linear layer.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// Computes out.
struct CrossForward {
  MatrixView<float const> x0;  // (m, width)
  MatrixView<float const> u;   // (m, width)
  MatrixView<float const> x;   // (m, width)
  MatrixView<float> out;       // (m, width); may be one of the three
};
void cross_forward(Stream& stream, CrossForward const& arguments);

// The gradients of CrossForward. They do not include the path through u: the caller adds W^T u_gradient to x_gradient,
// with linear_backward() and `accumulate`.
struct CrossBackward {
  MatrixView<float const> x0;            // (m, width)
  MatrixView<float const> u;             // (m, width)
  MatrixView<float const> out_gradient;  // (m, width)
  MatrixView<float> u_gradient;          // (m, width) = out_gradient * x0; may be u
  MatrixView<float> x0_gradient;         // (m, width) += out_gradient * u
  MatrixView<float> x_gradient;          // (m, width) = out_gradient; may be out_gradient
};
void cross_backward(Stream& stream, CrossBackward const& arguments);

}  // namespace gpups::kernels
