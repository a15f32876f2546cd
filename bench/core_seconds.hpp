// SPDX-License-Identifier: Apache-2.0
// CPU time, which other work on the machine changes less than elapsed time.
#pragma once

#include <ctime>

namespace gpups::bench {

// Returns the CPU time in seconds. clock: CLOCK_THREAD_CPUTIME_ID, or CLOCK_PROCESS_CPUTIME_ID for all threads.
inline double core_seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace gpups::bench
