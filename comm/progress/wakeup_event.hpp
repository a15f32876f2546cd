// SPDX-License-Identifier: Apache-2.0
// What a thread that has nothing to do sleeps by.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

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

// A wakeup event of threads of one process.
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
