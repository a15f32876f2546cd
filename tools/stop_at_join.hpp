// SPDX-License-Identifier: Apache-2.0
// Ends the process if a signal requests it while the process waits for the others of its job.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace gpups::tools {

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

}  // namespace gpups::tools
