// SPDX-License-Identifier: Apache-2.0
// CoTask is the type of the coroutines in which collectives are written. A task is bound to no thread: the thread that
// completes what the task waits for resumes it.
//
// A task starts when it is awaited, or earlier by start(), so that several tasks take turns. Awaiting a task rethrows
// its exception. Destroying a task before its end also destroys the tasks that it awaits.
//
// Give a braced argument a name before a co_await, because g++ 12 destroys a temporary of such an expression twice, as
// in co_await f({.keep = keep}).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpups::comm {

template <class T>
class CoTask;

namespace detail {

// The common part of all promises: at the end of the task it resumes the waiting coroutine.
struct TaskPromise {
  struct End {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> task) const noexcept {
      task.promise().ended = true;
      auto const next = task.promise().waiter;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  End final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }

  std::coroutine_handle<> waiter{};
  std::exception_ptr error{};
  bool ended = false;
};

template <class T>
struct ValuePromise : TaskPromise {
  CoTask<T> get_return_object();
  void return_value(T returned) { value = std::move(returned); }
  T result() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }

  std::optional<T> value{};
};

struct VoidPromise : TaskPromise {
  CoTask<void> get_return_object();
  void return_void() const noexcept {}
  void result() const {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

// A coroutine that returns a T. Move-only. At most one coroutine awaits it.
template <class T = void>
class [[nodiscard]] CoTask {
 public:
  using promise_type = std::conditional_t<std::is_void_v<T>, detail::VoidPromise, detail::ValuePromise<T>>;

  CoTask() = default;
  explicit CoTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  CoTask(CoTask&& other) noexcept { swap(other); }
  CoTask& operator=(CoTask&& other) noexcept {
    CoTask moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~CoTask() {
    if (handle_) handle_.destroy();
  }

  // Runs the task up to its first suspension, before it is awaited. Does nothing if the task was started before.
  void start() {
    if (!std::exchange(started_, true)) handle_.resume();
  }
  bool done() const { return handle_ && handle_.promise().ended; }
  // Returns the value of the task, or throws its exception. Call it once. REQUIRES: done().
  T result() { return handle_.promise().result(); }

  bool await_ready() const noexcept { return done(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().waiter = waiter;
    return std::exchange(started_, true) ? std::noop_coroutine() : std::coroutine_handle<>(handle_);
  }
  T await_resume() { return result(); }

 private:
  void swap(CoTask& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(started_, other.started_);
  }

  std::coroutine_handle<promise_type> handle_{};
  bool started_ = false;
};

template <class T>
CoTask<T> detail::ValuePromise<T>::get_return_object() {
  return CoTask<T>(std::coroutine_handle<ValuePromise>::from_promise(*this));
}
inline CoTask<void> detail::VoidPromise::get_return_object() {
  return CoTask<void>(std::coroutine_handle<VoidPromise>::from_promise(*this));
}

// Runs all tasks until they have ended; they take turns. Throws the exception of the first task in the list that
// failed, without waiting for the tasks after it.
inline CoTask<> all(std::vector<CoTask<>> tasks) {
  for (auto& task : tasks) task.start();
  for (auto& task : tasks) co_await task;
}

}  // namespace gpups::comm
