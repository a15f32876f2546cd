// SPDX-License-Identifier: Apache-2.0
// The threshold of a row filter (RowFilter), which adapts to the requested density.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gpups/table.hpp"

namespace gpups::cache {

// Computes the magnitude from which a row's change is sent in a step, such that the share of sent rows follows
// RowFilter::density. Depends only on the calls of begin() and count(). Source: the dynamic value-bounded filter of
// Ratatouille (Sun, Wen et al.).
class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(RowFilter const& filter) : filter_(filter) {}

  // Returns the threshold of the next step t: B_t = B_{t-1} * exp(0.5 * (sent share - density)), at most
  // threshold_max / sqrt(t). Steps are counted from 1.
  float next() const;
  // Returns true until begin() has set a first threshold above 0. Until then next() returns 0, so all rows are sent.
  bool is_new() const { return threshold_ == 0 && filter_.threshold_max > 0; }
  // Sets the first threshold to the magnitude that a share of `density` of the rows reaches. largest: (rows), the
  // largest magnitude of each row of the first step; may be empty. Call count() for the first step too.
  void begin(std::vector<float> largest);
  // Adapts the threshold after a step that has sent `sent` of `rows` rows. Does nothing for 0 rows.
  void count(std::size_t sent, std::size_t rows);

  // For checkpoints.
  struct State {
    std::uint64_t steps = 0;
    float threshold = 0;
  };
  State state() const { return {steps_, threshold_}; }
  void set_state(State const& state) { steps_ = state.steps, threshold_ = state.threshold; }

 private:
  static constexpr double kAdaptionRate = 0.5;

  RowFilter filter_;
  std::uint64_t steps_ = 0;
  float threshold_ = 0;  // without the limit of threshold_max
};

inline float AdaptiveThreshold::next() const {
  float const envelope = filter_.threshold_max / std::sqrt(static_cast<float>(steps_ + 1));
  return std::min(threshold_, envelope);
}

inline void AdaptiveThreshold::begin(std::vector<float> largest) {
  if (largest.empty()) return;
  auto const unsent = static_cast<std::size_t>(static_cast<double>(largest.size()) * (1 - double{filter_.density}));
  auto const place = largest.begin() + static_cast<std::ptrdiff_t>(std::min(unsent, largest.size() - 1));
  std::nth_element(largest.begin(), place, largest.end());
  threshold_ = *place;
}

inline void AdaptiveThreshold::count(std::size_t sent, std::size_t rows) {
  if (rows == 0) return;
  double const share = static_cast<double>(sent) / static_cast<double>(rows);
  // Starts from the limited threshold. Otherwise threshold_ could grow far beyond the limit, and would need many steps
  // to fall below it.
  threshold_ = next() * static_cast<float>(std::exp(kAdaptionRate * (share - double{filter_.density})));
  ++steps_;
}

}  // namespace gpups::cache
