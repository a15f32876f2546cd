// SPDX-License-Identifier: Apache-2.0
// The backward pass of distance_rows: the gradients of queries and candidates that were all scored with each other.
// With weight(i, j) the derivative of the loss by the score margin - |query i - candidate j|, the gradient of query i
// is a sum over the candidates, in their order, and that of candidate j a sum over the queries. Cost: n * m * dim
// differences.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct DistanceGradients {
  Algebra algebra;                     // a distance
  MatrixView<float const> queries;     // (n, dim); padding is 0
  MatrixView<float const> candidates;  // (m, dim); padding is 0
  MatrixView<float const> weights;     // (n, m)
  MatrixView<float> of_queries;        // (n, dim): the gradients; padding is set to 0
  MatrixView<float> of_candidates;     // (m, dim), the same
};
void distance_gradients(Stream& stream, DistanceGradients const& arguments);

}  // namespace gpups::kernels
