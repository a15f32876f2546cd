// SPDX-License-Identifier: Apache-2.0
// The contribution of one entry to an exact sum of gradients.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/base/function.hpp"

namespace gpups::kernels {

__extension__ typedef __int128 Int128;

// Sets units = floor(coefficient * source * per_grid), where per_grid is a power of two. The product of two floats is
// exact in double. Returns false if the result is NaN or outside int64.
GPUPS_FN inline bool contribution(float coefficient, float source, double per_grid, std::int64_t& units) {
  double const x = std::floor(static_cast<double>(coefficient) * static_cast<double>(source) * per_grid);
  if (!(x >= -0x1p63 && x < 0x1p63)) return false;
  units = static_cast<std::int64_t>(x);
  return true;
}

// A sum of contributions in 128 bits, which no number of entries can overflow, and whether all contributions so far
// were valid.
struct WideSum {
  Int128 units;
  bool good;

  GPUPS_FN void add(float coefficient, float source, double per_grid) {
    std::int64_t one = 0;
    good = contribution(coefficient, source, per_grid, one) && good;
    units += one;
  }
  // Returns whether all contributions were valid and the sum fits int64.
  GPUPS_FN bool fits() const { return good && units == static_cast<std::int64_t>(units); }
};

}  // namespace gpups::kernels
