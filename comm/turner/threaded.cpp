// SPDX-License-Identifier: Apache-2.0
#include "comm/turner/threaded.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/turner/stand_back.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

using Time = std::chrono::steady_clock::time_point;
Time now() { return std::chrono::steady_clock::now(); }

// A thread that waits turns until there has been nothing to do for this long; then it sleeps.
constexpr std::chrono::microseconds kBusy{50};

// Whoever waits turns the protocol itself, so that what it waits for costs no change of threads. Else the communication
// thread does.
class Threaded final : public Turner {
 public:
  Threaded(std::function<std::unique_ptr<Bell>()> const& make_bell, std::function<int()> cores)
      : own_bell_(make_bell()), guest_bell_(make_bell()), cores_(std::move(cores)) {}
  ~Threaded() override { stop(); }

  void start(std::function<bool()> turn) override {
    GPUPS_ASSERT(!thread_.joinable());
    std::lock_guard lock(mutex_);
    stopping_ = false;
    turn_ = std::move(turn);
    stand_back_.start(cores_());
    try {
      thread_ = std::thread([this] { loop(); });
    } catch (std::system_error const& error) {
      throw Error(
          fmt::format("a rank cannot start its communication thread ({}): use fewer ranks, or allow more threads "
                      "and memory",
                      error.code().message()));
    }
  }

  void wake() override {
    if (turner_ == std::this_thread::get_id()) return;  // a turn that does something is followed by another
    ask_for_turn();
  }

  // A thread that turns may come here too: as it waits for work of its own it takes up others', a microbatch's say.
  void turn_soon() override {
    if (turner_ == std::this_thread::get_id()) return ask_for_turn();
    std::unique_lock turning(turn_mutex_, std::try_to_lock);
    if (!turning.owns_lock() || !may_turn()) return wake();
    std::uint64_t const seen = wakes();
    bool const useful = turn();
    std::lock_guard lock(mutex_);
    leave(seen);
    if (useful) ++useful_turns_;
    look_again();
  }

  bool wait(std::function<bool()> const& done, double timeout_s) override {
    if (done()) return true;
    std::chrono::duration<double> const timeout(std::min(timeout_s, 1e9));  // the clock's type ends at some point
    Wait wait{done, std::chrono::duration_cast<std::chrono::nanoseconds>(timeout)};
    return become_guest() ? turn_until(wait) : watch_until(wait);
  }

  void stop() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      call_back();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // What is awaited, and until when: time begins anew with each useful turn.
  struct Wait {
    std::function<bool()> const& done;
    std::chrono::nanoseconds timeout;
    Time end = now() + timeout;
  };

  void ask_for_turn() {
    std::lock_guard lock(mutex_);
    ++wakes_;
    if (guest_) {
      guest_bell_->ring();
    } else {
      call_back();
    }
    // The turn that follows ends with a look at what is awaited; only where there is none is it for us to ask for one.
    if (!turning_) look_again();
  }
  // The communication thread is to turn at once. REQUIRES: the lock is held.
  void call_back() {
    stand_back_.end();
    own_bell_->ring();
  }
  // For a thread that has turned in its place, and had seen so many wakes before the last time. REQUIRES: the lock is
  // held.
  void leave(std::uint64_t seen) {
    stand_back_.leave();
    if (wakes_ != seen || watching_ > 0) call_back();
  }
  bool may_turn() {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() || stopping_) return false;
    stand_back_.begin();
    return true;
  }
  bool become_guest() {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() || stopping_ || guest_) return false;
    stand_back_.begin();
    return guest_ = true;
  }

  // For the guest. done() is called without the lock, since it may take one under which the protocol calls wake().
  bool turn_until(Wait& wait) {
    bool done = false;
    std::uint64_t seen = 0;
    Time busy_until = now() + kBusy;
    while (!done) {
      seen = wakes();
      bool const useful = turn_once();
      done = wait.done();
      Time const time = now();
      if (useful) {
        wait.end = time + wait.timeout;
        busy_until = time + kBusy;
      } else if (done || time >= wait.end) {
        break;
      } else if (time < busy_until) {
        std::this_thread::yield();  // what is awaited may be done by a rank that shares this core
      } else if (wakes() == seen) {
        guest_bell_->wait();
      }
    }
    std::lock_guard lock(mutex_);
    guest_ = false;
    leave(seen);
    return done || wait.done();
  }

  // For further threads that wait, and where nothing turns.
  bool watch_until(Wait& wait) {
    std::unique_lock lock(mutex_);
    std::uint64_t useful = useful_turns_;
    for (;;) {
      std::uint64_t const seen = changes_;
      lock.unlock();
      if (wait.done()) return true;
      lock.lock();
      ++watching_;
      bool const changed = changed_.wait_until(lock, wait.end, [&] { return changes_ != seen; });
      --watching_;
      if (std::exchange(useful, useful_turns_) != useful_turns_) {
        wait.end = now() + wait.timeout;
      } else if (!changed || now() >= wait.end) {
        lock.unlock();
        return wait.done();
      }
    }
  }

  // REQUIRES: turn_mutex_ is held.
  bool turn() {
    turner_ = std::this_thread::get_id();
    bool const useful = turn_();
    turner_ = std::thread::id();
    return useful;
  }
  // Says whether it was useful.
  bool turn_once() {
    bool useful;
    {
      std::lock_guard turning(turn_mutex_);
      useful = turn();
    }
    std::lock_guard lock(mutex_);
    if (guest_) stand_back_.go_on();
    if (useful) ++useful_turns_;
    look_again();
    return useful;
  }

  void loop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!stand_back_.is_over()) {
        stand_back_.sleep(lock);
        continue;
      }
      turning_ = true;
      std::uint64_t const seen = wakes_;
      lock.unlock();
      bool const useful = turn_once();
      lock.lock();
      turning_ = false;
      if (useful || wakes_ != seen || stopping_) continue;
      lock.unlock();
      own_bell_->wait();
      lock.lock();
    }
    look_again();
  }

  std::uint64_t wakes() {
    std::lock_guard lock(mutex_);
    return wakes_;
  }
  // REQUIRES: the lock is held.
  void look_again() {
    ++changes_;
    if (watching_ > 0) changed_.notify_all();
  }

  std::unique_ptr<Bell> const own_bell_, guest_bell_;  // of the communication thread, and of a thread that waits
  std::function<int()> const cores_;
  std::function<bool()> turn_;
  std::atomic<std::thread::id> turner_{};  // the thread that is turning
  std::mutex turn_mutex_;                  // held while turning
  std::mutex mutex_;                       // of all below
  std::condition_variable changed_;        // threads watch for changes_
  bool stopping_ = false;
  bool turning_ = false;  // the communication thread does
  bool guest_ = false;    // a thread that waits does
  StandBack stand_back_;
  int watching_ = 0;  // threads in watch_until()
  std::uint64_t wakes_ = 0, changes_ = 0, useful_turns_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Turner> make_threaded_turner(std::function<std::unique_ptr<Bell>()> const& make_bell,
                                             std::function<int()> cores) {
  return std::make_unique<Threaded>(make_bell, std::move(cores));
}

}  // namespace gpups::comm
