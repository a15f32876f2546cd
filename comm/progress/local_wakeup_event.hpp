// SPDX-License-Identifier: Apache-2.0
// A wakeup event of threads of one process.
#pragma once

#include <condition_variable>
#include <mutex>

#include "comm/progress/wakeup_event.hpp"

namespace gpups::comm {

class LocalWakeupEvent final : public WakeupEvent {
 public:
  void signal() override {
    std::lock_guard lock(mutex_);
    if (signaled_flag_) return;
    signaled_flag_ = true;
    signaled_.notify_one();
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    signaled_.wait_for(lock, kWakeupWaitMax, [this] { return signaled_flag_; });
    signaled_flag_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable signaled_;
  bool signaled_flag_ = false;
};

}  // namespace gpups::comm
