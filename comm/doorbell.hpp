// SPDX-License-Identifier: Apache-2.0
// A bell that rings within the process.
#pragma once

#include <condition_variable>
#include <mutex>

#include "comm/bell.hpp"

namespace gpups::comm {

class Doorbell final : public Bell {
 public:
  void ring() override {
    std::lock_guard lock(mutex_);
    if (ringing_) return;
    ringing_ = true;
    rung_.notify_one();
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    rung_.wait_for(lock, kBellLongest, [this] { return ringing_; });
    ringing_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;
};

}  // namespace gpups::comm
