// SPDX-License-Identifier: Apache-2.0
// The queries of triples: out.row(i) is left.row(i) * right.row(i), element by element, or times the conjugate; 12 *
// dim bytes per row. If the right row is a matrix: left * right, or right * left; 4 * dim^2 bytes per row. For
// distances: the left row moved by the right one, or moved back.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Computes the queries for objects or subjects.
struct CombineRows {
  Algebra algebra;
  bool conjugate;         // for subjects: the conjugate of the right row, right * left, or moved back
  PickedRows left;        // rows of (any, dim)
  PickedRows right;       // rows of (any, relation_dim(algebra, dim))
  MatrixView<float> out;  // (n, dim); padding is set to zero
};
void combine_rows(Stream& stream, CombineRows const& arguments);

}  // namespace gpups::kernels
