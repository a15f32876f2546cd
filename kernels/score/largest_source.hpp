// SPDX-License-Identifier: Apache-2.0
// Updates the upper bound of the magnitude of all sources with those of one triple, just after they are written, while
// they are in the first-level cache. Includes scratch rows, so the bound may be larger than all sources.
#pragma once

#include "kernels/base/max_abs.hpp"
#include "kernels/score/step_triples.hpp"

namespace gpups::kernels {

GPUPS_FN inline void note_largest_source(NativeLanes lanes, StepTriples const& g, std::size_t triple) {
  if (g.source_max_abs.empty()) return;
  std::size_t const rows = step_sources(g.algebra, g.negatives);
  float const* const sources = g.sources.row(rows * triple);
  float most = max_abs(lanes, sources, rows * g.sources.stride());
  float const* const relation = g.relation_sources.row(triple);
  if (relation != sources + kRelationGradient * g.sources.stride()) {  // not the row in `sources`
    float const other = max_abs(lanes, relation, row_stride(g.relation_sources.columns()));
    most = other > most ? other : most;
  }
  if (lanes.first()) atomic_max(g.source_max_abs.data(), most);
}

}  // namespace gpups::kernels
