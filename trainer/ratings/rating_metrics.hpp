// SPDX-License-Identifier: Apache-2.0
// Error metrics of predicted ratings over all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/task.hpp"

namespace gpups::trainer {

// A sum of non-negative numbers. It is kept as integers, so it does not depend on the order of the numbers: whole
// units, and fractions in units of 2^-30. NaN and numbers above 2^32 count as 2^32.
struct ErrorSum {
  std::int64_t whole = 0, rest = 0;

  void add(double x);
  double total() const { return static_cast<double>(whole) + static_cast<double>(rest) * 0x1p-30; }
};

// Sums of the errors of this rank's predictions.
class RatingSums {
 public:
  // Adds one rating. error: the prediction minus the rating.
  void add(double error);
  // Returns the metrics over all ranks. REQUIRES: at least one rating on all ranks together. Blocks. Collective.
  Metrics wait_metrics(Store& store) const;

 private:
  std::int64_t ratings_ = 0;
  ErrorSum squares_, distances_;
};

}  // namespace gpups::trainer
