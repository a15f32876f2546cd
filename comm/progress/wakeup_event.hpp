// SPDX-License-Identifier: Apache-2.0
// Wakeup events, on which threads that have nothing to do sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gpups::comm {

// The longest time for which a thread sleeps.
inline constexpr std::chrono::milliseconds kWakeupWaitMax{500};

// An object on which one thread sleeps.
class WakeupEvent {
 public:
  virtual ~WakeupEvent() = default;
  // Makes the wait() in progress return, or else the next one. Any thread.
  virtual void signal() = 0;
  // Blocks until signal() is called or data has arrived over the network; at most kWakeupWaitMax, because time limits
  // must be checked. May return early. One thread at a time.
  virtual void wait() = 0;
};

// A wakeup event between threads of one process.
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
