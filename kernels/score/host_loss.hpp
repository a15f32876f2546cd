// SPDX-License-Identifier: Apache-2.0
// The logistic loss of a triple on the host, from the scores of all its candidates.
#pragma once

#ifndef __CUDACC__

#include "kernels/base/vector.hpp"
#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

// Returns n rounded up to a multiple of kLanes, for loops over whole vectors.
constexpr std::size_t whole_lanes(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Replaces the scores of the positive, which is the first, and of its negatives by the derivatives of the loss. The
// array has room for whole_lanes(count).
inline SideLoss logistic_loss(float* scores, std::size_t count) {
  float loss[kLanes] = {};
  scores[0] = -scores[0];
  for (std::size_t first = 0; first < count; first += kLanes) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < kLanes; ++k) {
      Softplus const at = softplus(scores[first + k]);
      scores[first + k] = at.slope;
      loss[k] += first + k < count ? at.value : 0.0F;
    }
  }
  return {HostLanes{}.sum(kLanes, [&](std::size_t k) { return loss[k]; }), -scores[0]};
}

}  // namespace gpups::kernels

#endif
