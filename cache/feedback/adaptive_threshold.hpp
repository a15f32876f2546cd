// SPDX-License-Identifier: Apache-2.0
// The threshold of a row filter (RowFilter), which adapts to the requested density.
#pragma once

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
  RowFilter filter_;
  std::uint64_t steps_ = 0;
  float threshold_ = 0;  // without the limit of threshold_max
};

}  // namespace gpups::cache
