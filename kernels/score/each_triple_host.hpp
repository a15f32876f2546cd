// SPDX-License-Identifier: Apache-2.0
// How the host goes over triples: the rows of the next but one are on their way while one is computed.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/launch.hpp"
#include "kernels/score/step_triples.hpp"

namespace gpups::kernels {

// Step(g) has scratch of its own; step.prefetch(i) asks for what step(i) will read.
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
