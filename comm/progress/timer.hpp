// SPDX-License-Identifier: Apache-2.0
// Wakes a thread at a time that others may put off without waking it to say so.
#pragma once

#include <chrono>

namespace gpups::comm {

class Timer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Throws Error where the process may open no more files.
  Timer();
  Timer(Timer const&) = delete;
  Timer& operator=(Timer const&) = delete;
  ~Timer();

  // It rings once, at `at`; at once if that is over. Any thread.
  void set(Time at);
  // Blocks until it rings; returns at once if it has rung since it was set. One thread at a time.
  void wait();

 private:
  int const timer_;  // of the kernel
};

}  // namespace gpups::comm
