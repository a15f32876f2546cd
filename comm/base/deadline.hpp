// SPDX-License-Identifier: Apache-2.0
// A time limit for waiting by repeated checks: without sleep at first, so that short waits are measured well, then with
// short sleeps.
#pragma once

#include <chrono>
#include <thread>

namespace gpups::comm {

// A time limit that begins at its construction.
class Deadline {
 public:
  explicit Deadline(double timeout_s)
      : timeout_(std::chrono::duration_cast<SteadyClock::duration>(Seconds(timeout_s))) {}

  // Waits between two checks. Returns false when the time is over.
  bool wait() {
    auto const waited = SteadyClock::now() - start_;
    if (waited < std::chrono::milliseconds(5)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return waited < timeout_;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  SteadyClock::time_point start_ = SteadyClock::now();
  SteadyClock::duration timeout_;
};

}  // namespace gpups::comm
