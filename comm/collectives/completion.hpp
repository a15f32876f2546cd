// SPDX-License-Identifier: Apache-2.0
// Completions of sends and receives, and the requests with which coroutines await them.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpups/array.hpp"

namespace gpups::comm {

using Bytes = Array<std::uint8_t>;

// Returns a view of the same memory as bytes.
template <class T>
View<std::uint8_t> bytes_of(View<T> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.bytes(), values.device()};
}
template <class T>
View<std::uint8_t const> bytes_of(View<T const> values) {
  return {reinterpret_cast<std::uint8_t const*>(values.data()), values.bytes(), values.device()};
}

// The state of one send or receive, and the coroutine that awaits it.
struct Completion {
  bool done = false;
  std::coroutine_handle<> waiter{};
  Bytes bytes{};  // the received data, unless the receiver gave memory for it

  // Marks the send or receive as done and resumes the waiting coroutine.
  void end() {
    done = true;
    if (waiter) std::exchange(waiter, {}).resume();
  }
};

// Awaits a completion. At most one coroutine awaits a request; a request need not be awaited.
class RequestBase {
 public:
  // null: the send or receive is done.
  explicit RequestBase(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}
  RequestBase(RequestBase&&) = default;
  RequestBase& operator=(RequestBase&&) = default;
  ~RequestBase() {
    if (completion_ != nullptr) completion_->waiter = {};  // an abandoned collective destroys its coroutines
  }

  bool await_ready() const noexcept { return completion_ == nullptr || completion_->done; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_->waiter = waiter; }

 protected:
  std::shared_ptr<Completion> completion_;
};

// Completes when the receiver has the data or the header has a copy of it. The sender's memory may then change.
class SendRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// Completes when the data is at its destination for work that is queued on the communicator's stream from then on.
class Request : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// The same for a message whose size the receiver learns from its header. co_await returns the data.
class ReceiveRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  Bytes await_resume() { return std::move(completion_->bytes); }
};

}  // namespace gpups::comm
