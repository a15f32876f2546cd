// SPDX-License-Identifier: Apache-2.0
// Seconds that passed while it ran.
#pragma once

#include <chrono>

namespace gpups::trainer {

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
  double seconds() const {
    return running_ ? before_ + std::chrono::duration<double>(SteadyClock::now() - started_).count() : before_;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point started_{};
  double before_ = 0;
  bool running_ = false;
};

}  // namespace gpups::trainer
