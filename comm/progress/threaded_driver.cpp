// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/progress_driver.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/progress/backoff.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

using Time = std::chrono::steady_clock::time_point;
Time now() { return std::chrono::steady_clock::now(); }

// A thread that waits makes progress until there was nothing to do for this long; then it sleeps.
constexpr std::chrono::microseconds kSpinTime{50};

// A thread that waits makes progress itself, so that the data it waits for costs no change of threads. Otherwise the
// communication thread makes progress.
class ThreadedDriver final : public ProgressDriver {
 public:
  ThreadedDriver(std::function<std::unique_ptr<WakeupEvent>()> const& make_wakeup_event, std::function<int()> cores)
      : thread_event_(make_wakeup_event()), waiter_event_(make_wakeup_event()), cores_(std::move(cores)) {}
  ~ThreadedDriver() override { stop(); }

  void start(std::function<bool()> progress) override {
    GPUPS_ASSERT(!thread_.joinable());
    std::lock_guard lock(mutex_);
    stopping_ = false;
    progress_ = std::move(progress);
    backoff_.start(cores_());
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
    if (driver_ == std::this_thread::get_id()) return;  // progress that did something is followed by another one
    request_progress();
  }

  // The thread that makes progress may call this too: while it waits for its own work, it may execute work of other
  // threads, such as a microbatch.
  void progress_soon() override {
    if (driver_ == std::this_thread::get_id()) return request_progress();
    std::unique_lock progressing(progress_mutex_, std::try_to_lock);
    if (!progressing.owns_lock() || !begin_inline_progress()) return wake();
    std::uint64_t const seen = wakes();
    bool const progressed = progress();
    std::lock_guard lock(mutex_);
    leave(seen);
    if (progressed) ++useful_calls_;
    notify_waiters();
  }

  bool wait(std::function<bool()> const& done, double timeout_s) override {
    if (done()) return true;
    std::chrono::duration<double> const timeout(std::min(timeout_s, 1e9));  // the type of the clock has a limit
    Wait wait{done, std::chrono::duration_cast<std::chrono::nanoseconds>(timeout)};
    return begin_driving() ? drive_until(wait) : wait_passively(wait);
  }

  void stop() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      resume_thread();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // A wait and its end; each useful progress starts its time anew.
  struct Wait {
    std::function<bool()> const& done;
    std::chrono::nanoseconds timeout;
    Time end = now() + timeout;
  };

  void request_progress() {
    std::lock_guard lock(mutex_);
    ++wakes_;
    if (waiter_drives_) {
      waiter_event_->signal();
    } else {
      resume_thread();
    }
    // The progress that follows also checks what threads wait for; only without it they are notified here.
    if (!progressing_) notify_waiters();
  }
  // Makes the communication thread make progress at once. REQUIRES: the lock is held.
  void resume_thread() {
    backoff_.end();
    thread_event_->signal();
  }
  // Called by a thread that has made progress in place of the communication thread. seen: the number of wakes before
  // its last progress. REQUIRES: the lock is held.
  void leave(std::uint64_t seen) {
    backoff_.leave();
    if (wakes_ != seen || passive_waiters_ > 0) resume_thread();
  }
  bool begin_inline_progress() {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() || stopping_) return false;
    backoff_.begin();
    return true;
  }
  bool begin_driving() {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable() || stopping_ || waiter_drives_) return false;
    backoff_.begin();
    return waiter_drives_ = true;
  }

  // For the waiting thread that makes progress. done() is called without the lock, because it may take a lock under
  // which the engine calls wake().
  bool drive_until(Wait& wait) {
    bool done = false;
    std::uint64_t seen = 0;
    Time busy_until = now() + kSpinTime;
    while (!done) {
      seen = wakes();
      bool const progressed = progress_once();
      done = wait.done();
      Time const time = now();
      if (progressed) {
        wait.end = time + wait.timeout;
        busy_until = time + kSpinTime;
      } else if (done || time >= wait.end) {
        break;
      } else if (time < busy_until) {
        std::this_thread::yield();  // a rank that shares this core may be what it waits for
      } else if (wakes() == seen) {
        waiter_event_->wait();
      }
    }
    std::lock_guard lock(mutex_);
    waiter_drives_ = false;
    leave(seen);
    return done || wait.done();
  }

  // For other threads that wait, and for waits when progress is stopped.
  bool wait_passively(Wait& wait) {
    std::unique_lock lock(mutex_);
    std::uint64_t progressed = useful_calls_;
    for (;;) {
      std::uint64_t const seen = changes_;
      lock.unlock();
      if (wait.done()) return true;
      lock.lock();
      ++passive_waiters_;
      bool const changed = changed_.wait_until(lock, wait.end, [&] { return changes_ != seen; });
      --passive_waiters_;
      if (std::exchange(progressed, useful_calls_) != useful_calls_) {
        wait.end = now() + wait.timeout;
      } else if (!changed || now() >= wait.end) {
        lock.unlock();
        return wait.done();
      }
    }
  }

  // REQUIRES: progress_mutex_ is held.
  bool progress() {
    driver_ = std::this_thread::get_id();
    bool const progressed = progress_();
    driver_ = std::thread::id();
    return progressed;
  }
  // Returns whether it did anything.
  bool progress_once() {
    bool progressed;
    {
      std::lock_guard progressing(progress_mutex_);
      progressed = progress();
    }
    std::lock_guard lock(mutex_);
    if (waiter_drives_) backoff_.keep();
    if (progressed) ++useful_calls_;
    notify_waiters();
    return progressed;
  }

  void loop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!backoff_.is_over()) {
        backoff_.sleep(lock);
        continue;
      }
      progressing_ = true;
      std::uint64_t const seen = wakes_;
      lock.unlock();
      bool const progressed = progress_once();
      lock.lock();
      progressing_ = false;
      if (progressed || wakes_ != seen || stopping_) continue;
      lock.unlock();
      thread_event_->wait();
      lock.lock();
    }
    notify_waiters();
  }

  std::uint64_t wakes() {
    std::lock_guard lock(mutex_);
    return wakes_;
  }
  // REQUIRES: the lock is held.
  void notify_waiters() {
    ++changes_;
    if (passive_waiters_ > 0) changed_.notify_all();
  }

  std::unique_ptr<WakeupEvent> const thread_event_,
      waiter_event_;  // of the communication thread, and of a thread that waits
  std::function<int()> const cores_;
  std::function<bool()> progress_;
  std::atomic<std::thread::id> driver_{};  // the thread that makes progress
  std::mutex progress_mutex_;              // held while progress is made
  std::mutex mutex_;                       // guards all members below
  std::condition_variable changed_;        // of changes_
  bool stopping_ = false;
  bool progressing_ = false;    // the communication thread makes progress
  bool waiter_drives_ = false;  // a thread that waits makes progress
  Backoff backoff_;
  int passive_waiters_ = 0;  // threads in wait_passively()
  std::uint64_t wakes_ = 0, changes_ = 0, useful_calls_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ProgressDriver> make_threaded_driver(
    std::function<std::unique_ptr<WakeupEvent>()> const& make_wakeup_event, std::function<int()> cores) {
  return std::make_unique<ThreadedDriver>(make_wakeup_event, std::move(cores));
}

}  // namespace gpups::comm
