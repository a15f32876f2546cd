// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/parallel_for.hpp"

#include <exception>
#include <mutex>

#include "kernels/runtime/stream_impl.hpp"

namespace gpups::kernels {
namespace {

// Keeps the exception of the smallest index.
class FirstException {
 public:
  template <class F>
  void guard(std::size_t i, F call) {
    try {
      call();
    } catch (...) {
      std::lock_guard const lock(mutex_);
      if (thrown_ == nullptr || i < number_) {
        thrown_ = std::current_exception();
        number_ = i;
      }
    }
  }
  void rethrow() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr thrown_;
  std::size_t number_ = 0;
};

}  // namespace

void parallel_for(Stream& stream, std::size_t n, FunctionRef<void(Stream& part, std::size_t i)> body) {
  FirstException first;
  if (!stream.device().is_host()) {
    for (std::size_t i = 0; i < n; ++i) first.guard(i, [&] { body(stream, i); });
  } else {
    stream.impl().counters->count_launch();
    stream.impl().arena->blocks(n, [&](std::size_t i) {
      first.guard(i, [&] {
        Stream part(Device::host(), 1);
        body(part, i);
      });
    });
  }
  first.rethrow();
}

}  // namespace gpups::kernels
