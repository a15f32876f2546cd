// SPDX-License-Identifier: Apache-2.0
// Sums of numbers over samples and ranks whose results do not depend on the order of additions.
#pragma once

#include <cstdint>

namespace gpups::trainer {

// A sum of non-negative numbers. It is kept as integers: whole units, and fractions in units of 2^-30. NaN and numbers
// above 2^32 count as 2^32.
struct ExactSum {
  std::int64_t whole = 0, rest = 0;

  void add(double x);
  double total() const { return static_cast<double>(whole) + static_cast<double>(rest) * 0x1p-30; }
};

}  // namespace gpups::trainer
