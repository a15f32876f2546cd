// SPDX-License-Identifier: Apache-2.0
// The second-order term of a factorization machine (Rendle: "Factorization machines", ICDM 2010): the sum of the dot
// products of all pairs of a sample's vectors, computed as 1/2 sum_j ((sum_f e_fj)^2 - sum_f e_fj^2).
//
// Forward reads each vector once; backward reads it twice and writes its gradient once.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"

namespace gpups::kernels {

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
