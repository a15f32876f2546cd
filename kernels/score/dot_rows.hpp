// SPDX-License-Identifier: Apache-2.0
// All dot products of two sets of rows: out(i, j) = <left.row(i), right.row(j)>. A product is summed in the order of
// columns with fused multiply-adds, so the split of the work does not change its bits. Cost: n * m * dim multiply-adds.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct DotRows {
  MatrixView<float const> left;  // (n, dim)
  PickedRows right;              // m rows of (any, dim)
  MatrixView<float> out;         // (n, m)
};
void dot_rows(Stream& stream, DotRows const& arguments);

}  // namespace gpups::kernels
