// SPDX-License-Identifier: Apache-2.0
// Ends the process where a signal asks it to stop while it waits for the other processes of its job.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace gpups::tools {

// Watches trainer::StopSignals while the object lives. When a signal has come, calls `clean_up`, prints an error and
// exits with 2: nothing has been trained yet, so there is nothing to save. Signals that come later are left to others.
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

}  // namespace gpups::tools
