// SPDX-License-Identifier: Apache-2.0
// A callback that other threads call and its owner may replace or take back.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace gpups::comm {

class Callback {
 public:
  // When this returns, the callback before is not running and will not run. It must not call set() itself.
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
