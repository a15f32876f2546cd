// SPDX-License-Identifier: Apache-2.0
// A fully connected layer: out = in * weights^T + bias, with or without a ReLU, and its gradients.
//
// The products are oneDNN's on the host and cuBLASLt's on a GPU (docs/decisions/004-dense-layers.md). On the host a
// call runs in the thread that makes it: let parallel_for() compute microbatches at the same time. Bits depend on
// shapes and values alone. What is in padding columns is neither read nor written. An out of one column may begin
// anywhere in a row. Rows, biases and their gradients
// begin at multiples of 16 bytes. A layer without inputs is its bias. 2 * m * inputs * outputs operations forward, and
// at most twice as many backward.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

struct LinearForward {
  MatrixView<float const> in;       // (m, inputs)
  MatrixView<float const> weights;  // (outputs, inputs)
  View<float const> bias;           // (outputs); empty: none
  bool relu;                        // out = max(0, in * weights^T + bias)
  MatrixView<float> out;            // (m, outputs)
};
void linear_forward(Stream& stream, LinearForward const& arguments);

struct LinearBackward {
  MatrixView<float const> in;          // (m, inputs)
  MatrixView<float const> weights;     // (outputs, inputs)
  MatrixView<float const> out;         // (m, outputs): what linear_forward() wrote; only read with a ReLU
  bool relu;                           // whether it had one
  MatrixView<float> out_gradient;      // (m, outputs); with a ReLU set to zero where out is
  MatrixView<float> in_gradient;       // (m, inputs) = out_gradient * weights; no data: not wanted
  bool accumulate;                     // in_gradient is added to what is there
  MatrixView<float> weights_gradient;  // (outputs, inputs) = out_gradient^T * in; zero for m = 0
  View<float> bias_gradient;           // (outputs), the sum of out_gradient's rows; empty: not wanted
};
void linear_backward(Stream& stream, LinearBackward const& arguments);

}  // namespace gpups::kernels
