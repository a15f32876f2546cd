// SPDX-License-Identifier: Apache-2.0
// A timer on which a thread sleeps. Other threads may postpone it without waking the sleeping thread.
#pragma once

#include <chrono>

namespace gpups::comm {

// A timer of the operating system.
class Timer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Throws Error if the process may not open more files.
  Timer();
  Timer(Timer const&) = delete;
  Timer& operator=(Timer const&) = delete;
  ~Timer();

  // Sets the timer to fire once, at `at`, or at once if that time is over. Replaces an earlier time. Any thread.
  void set(Time at);
  // Blocks until the timer fires; returns at once if it has fired since it was set. One thread at a time.
  void wait();

 private:
  int const timer_;  // file descriptor
};

}  // namespace gpups::comm
