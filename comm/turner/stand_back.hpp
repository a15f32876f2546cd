// SPDX-License-Identifier: Apache-2.0
// How long the communication thread stands back: while other threads turn, and for some time after, in which they will
// often turn again. It sleeps by an alarm that they put off.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "comm/turner/alarm.hpp"

namespace gpups::comm {

// All is called with the turner's lock.
class StandBack {
 public:
  // Before all else. cores: of the rank; with a single one its communication thread would take it from who computes.
  void start(int cores) {
    alarm_.emplace();
    least_ = std::chrono::microseconds(cores > 1 ? 200 : 1000);
    most_ = 2 * least_;
  }

  // A thread takes up turning, goes on with it, and leaves off.
  void begin() {
    ++others_;
    put_off();
  }
  void go_on() {
    if (now() < until_) put_off();  // else it has rung, and is set when the last of them leaves
  }
  void leave() {
    --others_;
    put_off();
  }
  // The communication thread is to turn, if nobody else does.
  void end() {
    until_ = {};
    if (sleeps_) alarm_->set(until_);
  }

  // For the communication thread.
  bool is_over() const { return others_ == 0 && now() >= until_; }
  // Until it may be over, or end().
  void sleep(std::unique_lock<std::mutex>& lock) {
    if (others_ == 0 || now() < until_) alarm_->set(until_);
    sleeps_ = true;
    lock.unlock();
    alarm_->wait();
    lock.lock();
    sleeps_ = false;
  }

 private:
  using Time = Alarm::Time;
  static Time now() { return Time::clock::now(); }
  void put_off() {
    Time const time = now();
    if (until_ >= time + least_) return;
    until_ = time + most_;
    if (sleeps_) alarm_->set(until_);
  }

  // How long after the last turn it rings: between the two it need not be set again.
  std::chrono::microseconds least_{}, most_{};
  std::optional<Alarm> alarm_;
  Time until_{};
  int others_ = 0;       // that turn in its place
  bool sleeps_ = false;  // the communication thread does
};

}  // namespace gpups::comm
