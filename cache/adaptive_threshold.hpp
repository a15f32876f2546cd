// SPDX-License-Identifier: Apache-2.0
// The bound that rows' changes must reach to be sent: it follows the share of rows that ought to be. A pure function of
// what was sent.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/table.hpp"

namespace gpups::cache {

class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(RowFilter const& filter) : filter_(filter) {}

  // The bound of the next step. B_{t+1} = B_t exp(rate (sent share - share)), at most bound / sqrt(t).
  float next() const;
  // A first step has no past: it sends all its rows, and begins with the bound that the share of them, by their largest
  // magnitudes, reach. It counts as others do then, as one that has sent all.
  bool is_new() const { return threshold_ == 0 && filter_.threshold_max > 0; }
  void begin(std::vector<float> largest);
  // A step is over that has sent so many of its rows.
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
  float threshold_ = 0;  // without the envelope
};

}  // namespace gpups::cache
