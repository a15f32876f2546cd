// SPDX-License-Identifier: Apache-2.0
// How long the communication thread stands back: while other threads turn, and for some time after, in which they will
// often turn again. It sleeps by an timer that they put off.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "comm/progress/timer.hpp"

namespace gpups::comm {

// All is called with the driver's lock.
class Backoff {
 public:
  // Before all else. cores: of the rank; with a single one its communication thread would take it from who computes.
  void start(int cores) {
    timer_.emplace();
    pause_min_ = std::chrono::microseconds(cores > 1 ? 200 : 1000);
    pause_max_ = 2 * pause_min_;
  }

  // A thread takes up turning, goes on with it, and leaves off.
  void begin() {
    ++other_drivers_;
    postpone();
  }
  void keep() {
    if (now() < until_) postpone();  // else it has rung, and is set when the last of them leaves
  }
  void leave() {
    --other_drivers_;
    postpone();
  }
  // The communication thread is to turn, if nobody else does.
  void end() {
    until_ = {};
    if (asleep_) timer_->set(until_);
  }

  // For the communication thread.
  bool is_over() const { return other_drivers_ == 0 && now() >= until_; }
  // Until it may be over, or end().
  void sleep(std::unique_lock<std::mutex>& lock) {
    if (other_drivers_ == 0 || now() < until_) timer_->set(until_);
    asleep_ = true;
    lock.unlock();
    timer_->wait();
    lock.lock();
    asleep_ = false;
  }

 private:
  using Time = Timer::Time;
  static Time now() { return Time::clock::now(); }
  void postpone() {
    Time const time = now();
    if (until_ >= time + pause_min_) return;
    until_ = time + pause_max_;
    if (asleep_) timer_->set(until_);
  }

  // How long after the last turn it rings: between the two it need not be set again.
  std::chrono::microseconds pause_min_{}, pause_max_{};
  std::optional<Timer> timer_;
  Time until_{};
  int other_drivers_ = 0;  // that turn in its place
  bool asleep_ = false;    // the communication thread does
};

}  // namespace gpups::comm
