// SPDX-License-Identifier: Apache-2.0
// Ends this process, with an error that names the rank, when a rank is lost and the process does not end by itself: its
// own work may take long, or wait for a disk. Also where a library aborts because the other end of a connection is
// gone.
#pragma once

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "gpups/group.hpp"

namespace gpups::tools {

// One at a time in a process.
class Watchdog {
 public:
  explicit Watchdog(Group const& group);
  ~Watchdog();

 private:
  void wait_and_end(std::string const& text);

  Group const group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
  struct sigaction before_ {};  // of SIGABRT
};

}  // namespace gpups::tools
