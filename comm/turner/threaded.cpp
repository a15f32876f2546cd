// SPDX-License-Identifier: Apache-2.0
#include "comm/turner/threaded.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

class Threaded final : public Turner {
 public:
  ~Threaded() override { stop(); }

  void start(std::function<bool()> turn) override {
    GPUPS_ASSERT(!thread_.joinable());
    stopping_ = false;
    thread_ = std::thread([this, turn = std::move(turn)] { loop(turn); });
  }

  void wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    if (sleeping_) awake_.notify_one();
    // The turn that follows ends with a look at what is awaited; only where there is none is it for us to ask for one.
    if (!turning_) look_again();
  }

  bool wait(std::function<bool()> const& done, double timeout_s) override {
    std::chrono::duration<double> const timeout(std::min(timeout_s, 1e9));  // the clock's type ends at some point
    auto const deadline = [&] {
      return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
    };
    std::unique_lock lock(mutex_);
    auto end = deadline();
    std::uint64_t useful = useful_turns_;
    for (;;) {
      // done() is called without the lock, since it may take one under which the protocol calls wake().
      std::uint64_t const seen = changes_;
      lock.unlock();
      if (done()) return true;
      lock.lock();
      ++waiting_;
      bool const changed = changed_.wait_until(lock, end, [&] { return changes_ != seen; });
      --waiting_;
      if (std::exchange(useful, useful_turns_) != useful_turns_) {
        end = deadline();
      } else if (!changed || std::chrono::steady_clock::now() >= end) {
        lock.unlock();
        return done();
      }
    }
  }

  void stop() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      awake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void loop(std::function<bool()> const& turn) {
    std::unique_lock lock(mutex_);
    turning_ = true;
    while (!stopping_) {
      woken_ = false;
      lock.unlock();
      bool const useful = turn();
      lock.lock();
      if (useful) ++useful_turns_;
      look_again();
      sleeping_ = true;
      if (!useful) awake_.wait(lock, [this] { return woken_ || stopping_; });
      sleeping_ = false;
    }
    turning_ = false;
    look_again();
  }

  // REQUIRES: the lock is held.
  void look_again() {
    ++changes_;
    if (waiting_ > 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable awake_;    // the communication thread waits for woken_ or stopping_
  std::condition_variable changed_;  // the training thread waits for changes_
  bool woken_ = false, stopping_ = false;
  bool turning_ = false, sleeping_ = false;
  int waiting_ = 0;  // threads in wait()
  std::uint64_t changes_ = 0, useful_turns_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Turner> make_threaded_turner() { return std::make_unique<Threaded>(); }

}  // namespace gpups::comm
