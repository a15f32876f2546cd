// SPDX-License-Identifier: Apache-2.0
// Layers without weights that combine the inputs of a sample: side by side, element by element, or in pairs.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Copies a matrix into the first columns of another one, or adds it to them. Moves 8 bytes per number, or 12 with
// `add`.
struct CopyColumns {
  MatrixView<float const> from;  // (m, columns), of any stride
  MatrixView<float> to;          // (m, >= columns), of any stride; further columns do not change
  bool add = false;              // to += from
};
void copy_columns(Stream& stream, CopyColumns const& arguments);

// The element-wise part of a cross layer of DCN-v2 (Wang et al.: "DCN V2: improved deep & cross network", WWW 2021):
// out = x0 * u + x, where u = W x + b is the output of a linear layer.

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

// The second-order term of a factorization machine (Rendle: "Factorization machines", ICDM 2010): the sum of the dot
// products of all pairs of a sample's vectors, computed as 1/2 sum_j ((sum_f e_fj)^2 - sum_f e_fj^2).
//
// Forward reads each vector once; backward reads it twice and writes its gradient once.

// Computes the sum of each sample.
struct FactorizationForward {
  MatrixView<float const> rows;  // (m, slots * row_stride(dim)): `slots` vectors per sample
  std::size_t first_slot;        // vectors first_slot .. slots - 1 are used
  std::size_t slots;
  std::size_t dim;
  View<float> out;  // (m)
};
void factorization_forward(Stream& stream, FactorizationForward const& arguments);

// Adds the gradients of the vectors to rows_gradient.
struct FactorizationBackward {
  MatrixView<float const> rows;  // as above
  std::size_t first_slot;
  std::size_t slots;
  std::size_t dim;
  View<float const> out_gradient;   // (m)
  MatrixView<float> rows_gradient;  // the same shape as rows; gradients are added to it
};
void factorization_backward(Stream& stream, FactorizationBackward const& arguments);

}  // namespace gpups::kernels
