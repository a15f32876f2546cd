// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/adaptive_threshold.hpp"

#include <algorithm>
#include <cmath>

namespace gpups::cache {
namespace {

constexpr double kRate = 0.5;

}  // namespace

float AdaptiveThreshold::next() const {
  float const envelope = filter_.threshold_max / std::sqrt(static_cast<float>(steps_ + 1));
  return std::min(threshold_, envelope);
}

void AdaptiveThreshold::begin(std::vector<float> largest) {
  if (largest.empty()) return;
  auto const unsent = static_cast<std::size_t>(static_cast<double>(largest.size()) * (1 - double{filter_.density}));
  auto const place = largest.begin() + static_cast<std::ptrdiff_t>(std::min(unsent, largest.size() - 1));
  std::nth_element(largest.begin(), place, largest.end());
  threshold_ = *place;
}

void AdaptiveThreshold::count(std::size_t sent, std::size_t rows) {
  if (rows == 0) return;
  double const share = static_cast<double>(sent) / static_cast<double>(rows);
  // Starts from the limited threshold. Otherwise threshold_ could grow far beyond the limit, and would need many steps
  // to fall below it.
  threshold_ = next() * static_cast<float>(std::exp(kRate * (share - double{filter_.density})));
  ++steps_;
}

}  // namespace gpups::cache
