// SPDX-License-Identifier: Apache-2.0
// What the steps of all kinds of triples share: the loop over triples on the host, and the bound of their sources.
#pragma once

#include "kernels/base/max_abs.hpp"
#include "kernels/score/step_triples.hpp"
#ifndef __CUDACC__
#include <algorithm>
#include "kernels/runtime/launch.hpp"
#endif

namespace gpups::kernels {

#ifndef __CUDACC__
// The loop over triples on the host: it prefetches the rows of the triple after the next one.

// Computes all triples. Step(g) is made for each block, with its own scratch memory; step.prefetch(i) prefetches the
// rows that step(i) reads.
template <class Step>
void each_triple(HostExec ex, StepTriples const& g) {
  std::size_t const n = g.relation_rows.size();
  ex.arena->blocks((n + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
    Step const step(g);
    std::size_t const first = block * kBlockRows, last = std::min(first + kBlockRows, n);
    for (std::size_t i = first; i < last; ++i) {
      if (i + 2 < last) step.prefetch(i + 2);
      step(i);
    }
  });
}
#endif

// Updates the upper bound of the magnitude of all sources with those of one triple, just after they are written, while
// they are in the first-level cache. Includes scratch rows, so the bound may be larger than all sources.
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
