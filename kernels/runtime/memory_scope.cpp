// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/memory_scope.hpp"

#include <atomic>

#include "kernels/runtime/stream_impl.hpp"

namespace gpups::kernels {
namespace {

MemoryUser& user_of_thread() {
  thread_local MemoryUser user = new_memory_user();
  return user;
}

}  // namespace

MemoryUser new_memory_user() {
  static std::atomic<MemoryUser> next = 1;
  return next++;
}

MemoryUser memory_user() { return user_of_thread(); }

MemoryScope::MemoryScope(Stream const& stream) : before_(user_of_thread()) {
  if (!stream.device().is_host()) user_of_thread() = stream.impl().memory_user;
}
MemoryScope::~MemoryScope() { user_of_thread() = before_; }

}  // namespace gpups::kernels
