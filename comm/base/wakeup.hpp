// SPDX-License-Identifier: Apache-2.0
// How threads wake each other: a callback that other threads call, and events on which threads with nothing to do
// sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace gpups::comm {

// A callback that other threads call, and that its owner may replace or remove. Calls and replacements exclude each
// other.
class Callback {
 public:
  // Replaces the callback. When set() returns, the previous callback is not running and will not run. The callback must
  // not call set().
  void set(std::function<void()> wake) {
    std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  void operator()() {
    std::lock_guard lock(mutex_);
    if (wake_) wake_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
};

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
