// SPDX-License-Identifier: Apache-2.0
// The logistic loss of a triple on the host, from the scores of all its candidates.
#pragma once

#ifndef __CUDACC__

#include "kernels/score/triple_math.hpp"
#include "kernels/score/vector.hpp"

namespace gpups::kernels {

// Returns n rounded up to whole vectors.
constexpr std::size_t whole_vectors(std::size_t n) { return (n + kVector - 1) / kVector * kVector; }

// Replaces the scores of the positive, which is the first, and of its negatives by the derivatives of the loss. The
// array has room for whole vectors.
inline SideLoss logistic_loss(float* scores, std::size_t count) {
  float loss[kVector] = {};
  scores[0] = -scores[0];
  for (std::size_t first = 0; first < count; first += kVector) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < kVector; ++k) {
      Softplus const at = softplus(scores[first + k]);
      scores[first + k] = at.slope;
      loss[k] += first + k < count ? at.value : 0.0F;
    }
  }
  return {HostLanes{}.sum(kVector, [&](std::size_t k) { return loss[k]; }), -scores[0]};
}

}  // namespace gpups::kernels

#endif
