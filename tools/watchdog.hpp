// SPDX-License-Identifier: Apache-2.0
// Ends this process, with an error that has the number of the lost rank, when a rank is lost and the process does not
// end by itself, for example because it computes or waits for a disk. Also prints this error when a library calls
// abort() because the other end of a connection has closed.
#pragma once

#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "gpups/group.hpp"

namespace gpups::tools {

// Ends the process if a signal requests it while the process waits for the others of its job.

// A thread that watches trainer::StopSignals during the lifetime of the object. After a signal it calls `clean_up`,
// prints an error and exits with status 2: nothing has been trained yet, so there is nothing to save.
class StopAtJoin {
 public:
  explicit StopAtJoin(std::function<void()> clean_up);
  ~StopAtJoin();
  StopAtJoin(StopAtJoin const&) = delete;
  StopAtJoin& operator=(StopAtJoin const&) = delete;

 private:
  void watch();

  std::function<void()> clean_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// A process may have one at a time.
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
  struct sigaction before_ {};  // action of SIGABRT
};

}  // namespace gpups::tools
