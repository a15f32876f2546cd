// SPDX-License-Identifier: Apache-2.0
// What lies in the middle of some values.
#pragma once

#include <algorithm>
#include <vector>

namespace gpups::comm {

// Of two in the middle, their mean. REQUIRES: one value at least.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace gpups::comm
