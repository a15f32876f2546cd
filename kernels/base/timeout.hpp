// SPDX-License-Identifier: Apache-2.0
// Checks of options that several folders have: times to wait, and numbers of threads.
#pragma once

#include "kernels/base/check.hpp"

namespace gpups::kernels {

inline constexpr double kTimeoutMax_s = 1e9;  // about 30 years
inline constexpr int kThreadsMax = 4096;

// Throws Error if `timeout_s` seconds are not a valid limit for waiting. name: the name of the option.
inline void require_timeout(double timeout_s, char const* name) {
  GPUPS_REQUIRE(timeout_s > 0 && timeout_s <= kTimeoutMax_s,
                "{} is {} s (a rank must wait for some time, but not forever): use more than 0, and at most 1e9", name,
                timeout_s);
}

// Throws Error if `threads` is not a valid number of threads. 0 is valid: the library then chooses.
inline void require_threads(int threads, char const* name) {
  GPUPS_REQUIRE(threads >= 0 && threads <= kThreadsMax,
                "{} is {} (it is a number of host threads): use 1 to {}, or 0 for a number that fits the cores", name,
                threads, kThreadsMax);
}

}  // namespace gpups::kernels
