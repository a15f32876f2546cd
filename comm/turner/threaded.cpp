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

// Rings within the process.
class Doorbell final : public Bell {
 public:
  void ring() override {
    std::lock_guard lock(mutex_);
    ringing_ = true;
    rung_.notify_one();
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    rung_.wait(lock, [this] { return ringing_; });
    ringing_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;
};

class Threaded final : public Turner {
 public:
  explicit Threaded(std::unique_ptr<Bell> bell) : bell_(std::move(bell)) {}
  ~Threaded() override { stop(); }

  void start(std::function<bool()> turn) override {
    GPUPS_ASSERT(!thread_.joinable());
    stopping_ = false;
    thread_ = std::thread([this, turn = std::move(turn)] { loop(turn); });
  }

  void wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    if (sleeping_) bell_->ring();
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
      bell_->ring();
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
      if (useful || woken_ || stopping_) continue;
      sleeping_ = true;
      lock.unlock();
      bell_->wait();
      lock.lock();
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

  std::unique_ptr<Bell> const bell_;  // wakes the communication thread
  std::mutex mutex_;
  std::condition_variable changed_;  // the training thread waits for changes_
  bool woken_ = false, stopping_ = false;
  bool turning_ = false, sleeping_ = false;
  int waiting_ = 0;  // threads in wait()
  std::uint64_t changes_ = 0, useful_turns_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Turner> make_threaded_turner() { return make_threaded_turner(std::make_unique<Doorbell>()); }
std::unique_ptr<Turner> make_threaded_turner(std::unique_ptr<Bell> bell) {
  return std::make_unique<Threaded>(std::move(bell));
}

}  // namespace gpups::comm
