// SPDX-License-Identifier: Apache-2.0
// Queries: out.row(i) = left.row(i) * right.row(i), number by number, or * its conjugate. 12 * dim bytes per row.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct CombineRows {
  Algebra algebra;
  bool conjugate;          // of the right row
  PickedRows left, right;  // rows of (any, dim)
  MatrixView<float> out;   // (n, dim); padding becomes zero
};
void combine_rows(Stream& stream, CombineRows const& arguments);

}  // namespace gpups::kernels
