// SPDX-License-Identifier: Apache-2.0
// Measures the time of rounds (RoundSeconds).
#pragma once

#include <atomic>
#include <chrono>

#include "cache/protocol/round/round.hpp"
#include "gpups/stats.hpp"

namespace gpups::cache {

// Assigns the time since the last call to gradients, update, refreshes or waiting. For the thread that makes progress,
// except seconds().
class RoundTimer {
 public:
  // Progress begins. During a round, the time since the last call counts as waiting.
  void progress_begins(Round::Phase phase);
  // Messages or data were received or sent in this phase.
  void moved(Round::Phase phase);
  // An action was executed.
  void acted(Round::Action const& action);

  // Returns the times so far. Any thread.
  RoundSeconds seconds() const;

 private:
  using Seconds = std::atomic<double>;
  void spend(Seconds& on);

  std::chrono::steady_clock::time_point last_;  // end of the time that is assigned
  Seconds gradients_ = 0, update_ = 0, refreshes_ = 0, waiting_ = 0;
};

}  // namespace gpups::cache
