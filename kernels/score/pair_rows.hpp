// SPDX-License-Identifier: Apache-2.0
// Numbers of all pairs of a row of one set and a row of another: scores, and the gradients of distances.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

// All dot products of two sets of rows: out(i, j) = <left.row(i), right.row(j)>. A product is summed in the order of
// columns with fused multiply-adds, so the split of the work does not change its bits. Cost: n * m * dim multiply-adds.
struct DotRows {
  MatrixView<float const> left;  // (n, dim)
  PickedRows right;              // m rows of (any, dim)
  MatrixView<float> out;         // (n, m)
};
void dot_rows(Stream& stream, DotRows const& arguments);

// The scores of all pairs of a query and a candidate, if the score is a distance: out(i, j) = margin - |left.row(i) -
// right.row(j)|. A distance is summed in the order of the numbers of a row, so the split of the work does not change
// its bits. Cost: n * m * dim differences.
struct DistanceRows {
  Algebra algebra;  // a distance
  float margin;
  MatrixView<float const> left;  // (n, dim)
  PickedRows right;              // m rows of (any, dim)
  MatrixView<float> out;         // (n, m)
};
void distance_rows(Stream& stream, DistanceRows const& arguments);

// The backward pass of distance_rows: the gradients of queries and candidates that were all scored with each other.
// With weight(i, j) the derivative of the loss by the score margin - |query i - candidate j|, the gradient of query i
// is a sum over the candidates, in their order, and that of candidate j a sum over the queries. Cost: n * m * dim
// differences.
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
