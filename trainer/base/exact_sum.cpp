// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/exact_sum.hpp"

#include <cmath>

namespace gpups::trainer {

void ExactSum::add(double x) {
  double const most = 0x1p32, some = x < most ? x : most, floor = std::floor(some);
  whole += static_cast<std::int64_t>(floor);
  rest += static_cast<std::int64_t>((some - floor) * 0x1p30);
}

}  // namespace gpups::trainer
