// SPDX-License-Identifier: Apache-2.0
// Measures seconds between start() and stop(), summed over all intervals.
#pragma once

#include <chrono>

namespace gpups::trainer {

// start() and stop() may be called repeatedly.
class Stopwatch {
 public:
  void start() {
    running_ = true;
    started_ = SteadyClock::now();
  }
  void stop() {
    before_ = seconds();
    running_ = false;
  }
  // Returns the total, including the current interval.
  double seconds() const {
    return running_ ? before_ + std::chrono::duration<double>(SteadyClock::now() - started_).count() : before_;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point started_{};
  double before_ = 0;  // seconds of earlier intervals
  bool running_ = false;
};

}  // namespace gpups::trainer
