// SPDX-License-Identifier: Apache-2.0
// Error metrics of predicted ratings over all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/base/exact_sum.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// Sums of the errors of this rank's predictions.
class RatingSums {
 public:
  // Adds one rating. error: the prediction minus the rating.
  void add(double error);
  // Returns the metrics over all ranks. REQUIRES: at least one rating on all ranks together. Blocks. Collective.
  Metrics wait_metrics(Store& store) const;

 private:
  std::int64_t ratings_ = 0;
  ExactSum squares_, distances_;
};

}  // namespace gpups::trainer
