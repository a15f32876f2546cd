// SPDX-License-Identifier: Apache-2.0
// The loop over triples on the host: it prefetches the rows of the triple after the next one.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/runtime/launch.hpp"
#include "kernels/score/step_triples.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels

#endif
