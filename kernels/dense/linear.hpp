// SPDX-License-Identifier: Apache-2.0
// A fully connected layer, out = in * weights^T + bias, optionally with a ReLU, and its gradients.
//
// oneDNN computes the products on the host, and cuBLASLt on a GPU (docs/decisions/004-dense-layers.md). A call on the
// host uses only the calling thread: parallel_for() can compute several microbatches at the same time. The bits of the
// result depend on shapes, values and precision alone. Padding columns are neither read nor written.
//
// Rows, biases and their gradients begin at multiples of 16 bytes; an `out` with one column may begin anywhere in a
// row. A layer without inputs returns its bias. Cost: 2 * m * inputs * outputs operations forward, at most twice as
// many backward.
#pragma once

#include "gpups/array.hpp"
#include "kernels/dense/product.hpp"

namespace gpups::kernels {

// Computes the output of the layer.
struct LinearForward {
  MatrixView<float const> in;       // (m, inputs)
  MatrixView<float const> weights;  // (outputs, inputs)
  View<float const> bias;           // (outputs); empty: none
  bool relu;                        // out = max(0, in * weights^T + bias)
  MatrixView<float> out;            // (m, outputs)
  ProductPrecision precision = ProductPrecision::kFp32;
};
void linear_forward(Stream& stream, LinearForward const& arguments);

// Computes the gradients of inputs, weights and bias, given the gradient of the output.
struct LinearBackward {
  MatrixView<float const> in;          // (m, inputs)
  MatrixView<float const> weights;     // (outputs, inputs)
  MatrixView<float const> out;         // (m, outputs): the result of linear_forward(); only read if `relu`
  bool relu;                           // whether the layer has a ReLU
  MatrixView<float> out_gradient;      // (m, outputs); with a ReLU, set to zero where `out` is zero
  MatrixView<float> in_gradient;       // (m, inputs) = out_gradient * weights; without data: not computed
  bool accumulate;                     // in_gradient += the result, instead of =
  MatrixView<float> weights_gradient;  // (outputs, inputs) = out_gradient^T * in; zero for m = 0
  View<float> bias_gradient;           // (outputs), the sum of the rows of out_gradient; empty: not computed
  ProductPrecision precision = ProductPrecision::kFp32;
};
void linear_backward(Stream& stream, LinearBackward const& arguments);

}  // namespace gpups::kernels
