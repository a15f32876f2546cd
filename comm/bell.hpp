// SPDX-License-Identifier: Apache-2.0
// What a thread that has nothing to do sleeps by.
#pragma once

namespace gpups::comm {

class Bell {
 public:
  virtual ~Bell() = default;
  // The wait() that goes on, or else the next one, returns. Any thread.
  virtual void ring() = 0;
  // Blocks until ring(), or until something has arrived over the network. May return early. One thread at a time.
  virtual void wait() = 0;
};

}  // namespace gpups::comm
