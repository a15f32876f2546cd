// SPDX-License-Identifier: Apache-2.0
// A callback that other threads call, and that its owner may replace or remove.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace gpups::comm {

// Calls and replacements exclude each other.
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

}  // namespace gpups::comm
