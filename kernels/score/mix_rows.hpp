// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows: out.row(i) = sum over j of weight(i, j) * rows.row(j), added in the order of j with fused
// multiply-adds, so no split of the work changes its bits. n * m * dim multiply-adds.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct MixRows {
  float const* weights;  // weight(i, j) is weights[i * row_step + j * column_step]
  std::size_t row_step, column_step;
  PickedRows rows;        // m rows of (any, dim)
  std::size_t count;      // m
  MatrixView<float> out;  // (n, dim); padding is written as the rows' is
};
void mix_rows(Stream& stream, MixRows const& arguments);

}  // namespace gpups::kernels
