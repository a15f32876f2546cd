// SPDX-License-Identifier: Apache-2.0
// Limits of options that the library's folders share: how long to wait, and on how many cores.
#pragma once

#include "kernels/check.hpp"

namespace gpups::kernels {

inline constexpr double kTimeoutMax_s = 1e9;  // about 30 years
inline constexpr int kThreadsMax = 4096;

// Throws Error for what is no time to wait. name: of the option.
inline void require_timeout(double timeout_s, char const* name) {
  GPUPS_REQUIRE(timeout_s > 0 && timeout_s <= kTimeoutMax_s,
                "{} is {} s (a rank waits at least for a moment, and no wait is endless): use more than 0, and at most "
                "1e9",
                name, timeout_s);
}

// The same for a number of threads; 0 stands for a number that the library chooses.
inline void require_threads(int threads, char const* name) {
  GPUPS_REQUIRE(threads >= 0 && threads <= kThreadsMax,
                "{} is {} (it is a number of cores): use 1 to {}, or 0 for as many as there are", name, threads,
                kThreadsMax);
}

}  // namespace gpups::kernels
