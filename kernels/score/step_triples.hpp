// SPDX-License-Identifier: Apache-2.0
// Loss and gradients of triples with negatives of their own. Reads 3 + 2 * negatives rows for each triple and writes 5:
// the gradient of a negative is a coefficient times one of the triple's two queries. Or as many as it reads, where the
// score is a distance: then each entry has a source of its own.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Rows of `sources` for each triple.
constexpr std::size_t step_sources(Algebra algebra, std::size_t negatives) {
  return is_distance(algebra) ? 2 + 2 * negatives : kSourcesPerTriple;
}

struct StepTriples {
  Algebra algebra;
  float margin = 0;  // of a distance: the score of distance 0
  Loss loss;
  Regulariser regulariser;
  std::size_t negatives;              // of each side
  MatrixView<float const> entities;   // (any, dim)
  MatrixView<float const> relations;  // (any, relation_dim)
  // (n, 2 + 2 * negatives): rows of `entities`: subject, object, negatives for the object, negatives for the subject
  View<std::uint32_t const> entity_rows;
  View<std::uint32_t const> relation_rows;  // (n)
  MatrixView<float> sources;                // (n * step_sources(algebra, negatives), dim), all written
  // (n, relation_dim), all written; may be the rows for it in `sources` if the score is no distance
  MatrixView<float> relation_sources;
  View<float> coefficients;   // as entity_rows: the factor of each entry's source
  View<std::int64_t> losses;  // (n), in units of kLossUnit
  // (1) or empty: raised to the largest absolute value in what is written to sources and relation_sources, infinity
  // where one is not finite
  View<float> source_max_abs;
};
void step_triples(Stream& stream, StepTriples const& arguments);

}  // namespace gpups::kernels
