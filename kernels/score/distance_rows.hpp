// SPDX-License-Identifier: Apache-2.0
// The scores of all pairs of a query and a candidate, if the score is a distance: out(i, j) = margin - |left.row(i) -
// right.row(j)|. A distance is summed in the order of the numbers of a row, so the split of the work does not change
// its bits. Cost: n * m * dim differences.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct DistanceRows {
  Algebra algebra;  // a distance
  float margin;
  MatrixView<float const> left;  // (n, dim)
  PickedRows right;              // m rows of (any, dim)
  MatrixView<float> out;         // (n, m)
};
void distance_rows(Stream& stream, DistanceRows const& arguments);

}  // namespace gpups::kernels
