// SPDX-License-Identifier: Apache-2.0
// The backward pass of distance_rows: the gradients of queries and candidates that were all scored with each other.
// out.row(i) = the sum over j of weight(i, j) * the gradient of the score margin - |left.row(i) - right.row(j)| by
// left.row(i), summed in the order of j. Cost: n * m * dim differences.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct SumDirections {
  Algebra algebra;                  // a distance
  MatrixView<float const> left;     // (n, dim); padding is 0
  MatrixView<float const> right;    // (m, dim); padding is 0
  MatrixView<float const> weights;  // (n, m): the derivatives of the loss by the scores
  bool transposed;                  // weights are (m, n)
  MatrixView<float> out;            // (n, dim); padding is set to 0
};
void sum_directions(Stream& stream, SumDirections const& arguments);

}  // namespace gpups::kernels
