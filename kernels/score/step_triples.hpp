// SPDX-License-Identifier: Apache-2.0
// Computes loss and gradients of triples that have their own negatives. Reads 3 + 2 * negatives rows for each triple
// and writes 5: the gradient of a negative is a coefficient times one of the triple's two queries. For distances each
// entry has its own source, so it writes as many rows as it reads.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Returns the number of rows of `sources` for each triple.
constexpr std::size_t step_sources(Algebra algebra, std::size_t negatives) {
  return is_distance(algebra) ? 2 + 2 * negatives : kSourcesPerTriple;
}

struct StepTriples {
  Algebra algebra;
  float margin = 0;  // the score of distance 0, if the score is a distance
  Loss loss;
  Regulariser regulariser;
  std::size_t negatives;              // of each side
  MatrixView<float const> entities;   // (any, dim)
  MatrixView<float const> relations;  // (any, relation_dim)
  // (n, 2 + 2 * negatives): the rows of `entities` of the subject, the object, the negatives for the object, and the
  // negatives for the subject
  View<std::uint32_t const> entity_rows;
  View<std::uint32_t const> relation_rows;  // (n)
  MatrixView<float> sources;                // (n * step_sources(algebra, negatives), dim), all elements are written
  // (n, relation_dim), all elements are written. May be the rows for it in `sources`, unless the score is a distance.
  MatrixView<float> relation_sources;
  View<float> coefficients;   // shaped as entity_rows: the factor of the source of each entry
  View<std::int64_t> losses;  // (n), in units of kLossUnit
  // (1) or empty: raised to at least the largest magnitude of all elements of sources and relation_sources; infinity if
  // one is not finite
  View<float> source_max_abs;
};
void step_triples(Stream& stream, StepTriples const& arguments);

}  // namespace gpups::kernels
