// SPDX-License-Identifier: Apache-2.0
// A message of a collective that is on its way, and the coroutine that awaits it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpups/array.hpp"

namespace gpups::comm {

using Bytes = Array<std::uint8_t>;

// The same memory as bytes.
template <class T>
View<std::uint8_t> bytes_of(View<T> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.bytes(), values.device()};
}
template <class T>
View<std::uint8_t const> bytes_of(View<T const> values) {
  return {reinterpret_cast<std::uint8_t const*>(values.data()), values.bytes(), values.device()};
}

// One side's part in a message.
struct Completion {
  bool done = false;
  std::coroutine_handle<> waiter{};
  Bytes bytes{};  // what has come, where the receiver did not say where to

  // Goes on with who awaits it.
  void end() {
    done = true;
    if (waiter) std::exchange(waiter, {}).resume();
  }
};

// Awaits the end of a delivery. Whoever does not care when that is need not await it. One coroutine may.
class RequestBase {
 public:
  // null: it is over.
  explicit RequestBase(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}
  RequestBase(RequestBase&&) = default;
  RequestBase& operator=(RequestBase&&) = default;
  ~RequestBase() {
    if (completion_ != nullptr) completion_->waiter = {};  // a run that is given up takes its coroutines along
  }

  bool await_ready() const noexcept { return completion_ == nullptr || completion_->done; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_->waiter = waiter; }

 protected:
  std::shared_ptr<Completion> completion_;
};

// Until the receiver has the data: the sender's memory may then change.
class SendRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// Until the data is where it was to go; work queued on the communicator's stream from then on sees it.
class Request : public RequestBase {
 public:
  using RequestBase::RequestBase;
  void await_resume() const noexcept {}
};

// The same for a message whose receiver learns its size from it.
class ReceiveRequest : public RequestBase {
 public:
  using RequestBase::RequestBase;
  Bytes await_resume() { return std::move(completion_->bytes); }
};

}  // namespace gpups::comm
