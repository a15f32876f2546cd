// SPDX-License-Identifier: Apache-2.0
// How far predictions are from ratings, over all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/task.hpp"

namespace gpups::trainer {

// A sum of numbers that are not negative, as integers, so that it has no order: whole units, and the rest in units of
// 2^-30. What is not a number, or beyond 2^32, counts as 2^32.
struct ErrorSum {
  std::int64_t whole = 0, rest = 0;

  void add(double x);
  double total() const { return static_cast<double>(whole) + static_cast<double>(rest) * 0x1p-30; }
};

class RatingSums {
 public:
  // error: the prediction less the rating.
  void add(double error);
  // Of all ranks. REQUIRES: there is at least one rating. Waits. Collective.
  Metrics wait_metrics(Store& store) const;

 private:
  std::int64_t ratings_ = 0;
  ErrorSum squares_, distances_;
};

}  // namespace gpups::trainer
