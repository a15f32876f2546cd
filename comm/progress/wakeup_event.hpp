// SPDX-License-Identifier: Apache-2.0
// What a thread that has nothing to do sleeps by.
#pragma once

#include <chrono>

namespace gpups::comm {

inline constexpr std::chrono::milliseconds kWakeupWaitMax{500};

class WakeupEvent {
 public:
  virtual ~WakeupEvent() = default;
  // The wait() that goes on, or else the next one, returns. Any thread.
  virtual void signal() = 0;
  // Blocks until ring(), or until something has arrived over the network; not longer than kWakeupWaitMax, since there
  // are clocks to look at. May return early. One thread at a time.
  virtual void wait() = 0;
};

}  // namespace gpups::comm
