// SPDX-License-Identifier: Apache-2.0
// What a thread that has nothing to do sleeps by.
#pragma once

#include <chrono>

namespace gpups::comm {

inline constexpr std::chrono::milliseconds kBellLongest{500};

class Bell {
 public:
  virtual ~Bell() = default;
  // The wait() that goes on, or else the next one, returns. Any thread.
  virtual void ring() = 0;
  // Blocks until ring(), or until something has arrived over the network; not longer than kBellLongest, since there are
  // clocks to look at. May return early. One thread at a time.
  virtual void wait() = 0;
};

}  // namespace gpups::comm
