// SPDX-License-Identifier: Apache-2.0
// A penalty on rows that has the same meaning for every size of the data and of batches.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace gpups::trainer {

// Returns the l2 of a row optimizer for which the loss has l2 * |row|^2 for each use of a row by a sample. The
// optimizer adds its l2 once in a step to the gradient of a row that the step uses, however often, and gradients are
// means over the batch; so this is the penalty of one use, times the mean number of uses of a row that a step uses.
// uses: of each row, in an epoch of `samples` samples. REQUIRES: samples and batch are above 0.
inline float l2_of_updates(double l2, std::span<double const> uses, double samples, double batch) {
  double const share = std::min(1.0, batch / samples);
  double in_step = 0, rows = 0;  // uses in a step, and rows that it uses
  for (double const n : uses) {
    in_step += n * share;
    if (n > 0) rows -= std::expm1(n * std::log1p(-share));  // 1 - (1 - share)^n
  }
  return rows == 0 ? 0 : static_cast<float>(2 * l2 * in_step / rows / std::min(batch, samples));
}

}  // namespace gpups::trainer
