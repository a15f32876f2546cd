// SPDX-License-Identifier: Apache-2.0
// Gradients of the rows of triples from those of their queries, and the regulariser.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct FinishTriples {
  Algebra algebra;
  Regulariser regulariser;
  PickedRows subjects;       // (n) rows of (any, dim)
  PickedRows relations;      // (n) rows of (any, relation_dim)
  PickedRows objects;        // (n) rows of (any, dim)
  View<float const> slopes;  // (n): derivative of the loss by the positive's score
  // (n * kSourcesPerTriple, dim): the queries are in place; the gradients of the queries for objects and subjects lie
  // where those of subject and object go, the positive's share left out
  MatrixView<float> sources;
  MatrixView<float> relation_sources;  // (n, relation_dim), all written; may be the rows for it in `sources`
  View<std::int64_t> losses;           // (n), in units of kLossUnit; the regulariser's is added
};
void finish_triples(Stream& stream, FinishTriples const& arguments);

}  // namespace gpups::kernels
