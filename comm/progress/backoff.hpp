// SPDX-License-Identifier: Apache-2.0
// The backoff of the communication thread: it leaves progress to other threads while they make it, and for some time
// after, in which they often make progress again. It sleeps on a timer that the other threads postpone.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

namespace gpups::comm {

// A timer of the operating system.
class Timer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Throws Error if the process may not open more files.
  Timer();
  Timer(Timer const&) = delete;
  Timer& operator=(Timer const&) = delete;
  ~Timer();

  // Sets the timer to fire once, at `at`, or at once if that time is over. Replaces an earlier time. Any thread.
  void set(Time at);
  // Blocks until the timer fires; returns at once if it has fired since it was set. One thread at a time.
  void wait();

 private:
  int const timer_;  // file descriptor
};

// All functions are called with the lock of the driver held.
class Backoff {
 public:
  // Call it first. cores: of the rank. With one core the backoff is longer, because the communication thread would take
  // the core from threads that compute.
  void start(int cores) {
    timer_.emplace();
    pause_min_ = std::chrono::microseconds(cores > 1 ? 200 : 1000);
    pause_max_ = 2 * pause_min_;
  }

  // Another thread starts to make progress, continues, and stops.
  void begin() {
    ++other_drivers_;
    postpone();
  }
  void keep() {
    if (now() < until_) postpone();  // otherwise the timer has fired, and the last thread that leaves sets it
  }
  void leave() {
    --other_drivers_;
    postpone();
  }
  // Ends the backoff as soon as no other thread makes progress.
  void end() {
    until_ = {};
    if (asleep_) timer_->set(until_);
  }

  // For the communication thread.
  bool is_over() const { return other_drivers_ == 0 && now() >= until_; }
  // Sleeps until the backoff may be over, or end() is called.
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

  // Limits of the time from the last progress to the moment when the timer fires. Within these limits the timer is not
  // set again.
  std::chrono::microseconds pause_min_{}, pause_max_{};
  std::optional<Timer> timer_;
  Time until_{};
  int other_drivers_ = 0;  // that make progress in its place
  bool asleep_ = false;    // the communication thread sleeps
};

}  // namespace gpups::comm
