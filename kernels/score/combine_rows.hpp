// SPDX-License-Identifier: Apache-2.0
// Queries: out.row(i) = left.row(i) * right.row(i), number by number, or * its conjugate: 12 * dim bytes per row. Where
// the right row is a matrix, left * right, or right * left: 4 * dim^2 bytes. Of distances: the left row moved by the
// right one, or back.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct CombineRows {
  Algebra algebra;
  bool conjugate;         // for subjects: the conjugate of the right row, or right * left, or moved back
  PickedRows left;        // rows of (any, dim)
  PickedRows right;       // rows of (any, relation_dim(algebra, dim))
  MatrixView<float> out;  // (n, dim); padding becomes zero
};
void combine_rows(Stream& stream, CombineRows const& arguments);

}  // namespace gpups::kernels
