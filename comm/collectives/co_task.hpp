// SPDX-License-Identifier: Apache-2.0
// A coroutine that others await: how the collectives are written. It belongs to no thread: whoever makes happen what it
// awaits goes on with it.
//
// A task runs when it is awaited, or as soon as start() is called, so that several go on beside each other. What it
// throws, awaiting it throws. A task that is destroyed before its end takes those along that it awaits.
//
// What braces make gets a name before a co_await: g++ 12 destroys twice what is made within such an expression, as in
// co_await f({.keep = keep}).
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

// What all tasks have: whoever awaits this one goes on at its end.
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

// Move-only.
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

  // Runs until it has to wait for the first time; before it is awaited. Nothing where it has been started.
  void start() {
    if (!std::exchange(started_, true)) handle_.resume();
  }
  bool done() const { return handle_ && handle_.promise().ended; }
  // What it returned; throws what it threw. REQUIRES: done(). Once.
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

// Goes on with all of them beside each other until all have ended. Throws what the first throws that threw.
inline CoTask<> all(std::vector<CoTask<>> tasks) {
  for (auto& task : tasks) task.start();
  for (auto& task : tasks) co_await task;
}

}  // namespace gpups::comm
