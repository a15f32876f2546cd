// SPDX-License-Identifier: Apache-2.0
// Computes the gradients of the rows of triples from the gradients of their queries, and adds the regulariser.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct FinishTriples {
  Algebra algebra;
  Regulariser regulariser;
  PickedRows subjects;       // (n) rows of (any, dim)
  PickedRows relations;      // (n) rows of (any, relation_dim)
  PickedRows objects;        // (n) rows of (any, dim)
  View<float const> slopes;  // (n): the derivative of the loss by the score of the positive
  // (n * kSourcesPerTriple, dim): contains the queries. The rows for the gradients of subject and object contain the
  // gradients of the queries for objects and for subjects, without the part of the positive. With objects_only, those
  // for subjects are 0 and not read.
  MatrixView<float> sources;
  bool objects_only = false;
  MatrixView<float> relation_sources;  // (n, relation_dim), all elements are set; may be rows of `sources`
  View<std::int64_t> losses;           // (n), in units of kLossUnit; the loss of the regulariser is added
  float loss_scale = 1;                // a factor of what is added, not of the gradients
};
void finish_triples(Stream& stream, FinishTriples const& arguments);

}  // namespace gpups::kernels
