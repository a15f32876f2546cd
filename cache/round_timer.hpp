// SPDX-License-Identifier: Apache-2.0
// Divides the time of rounds among what it was spent on.
#pragma once

#include <atomic>
#include <chrono>

#include "cache/round.hpp"
#include "gpups/stats.hpp"

namespace gpups::cache {

// For the thread that turns, but for seconds().
class RoundTimer {
 public:
  // A turn begins. What has passed since the last useful thing, if a round goes on, was waiting.
  void turn_begins(Round::Phase phase);
  // The turn has received or sent in this phase.
  void moved(Round::Phase phase);
  // It has done this.
  void acted(Round::ActionKind step);

  // Any thread.
  RoundSeconds seconds() const;

 private:
  using Seconds = std::atomic<double>;
  void spend(Seconds& on);

  std::chrono::steady_clock::time_point last_;  // until which all is accounted for
  Seconds gradients_ = 0, update_ = 0, refreshes_ = 0, waiting_ = 0;
};

}  // namespace gpups::cache
