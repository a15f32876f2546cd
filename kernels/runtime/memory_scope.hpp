// SPDX-License-Identifier: Apache-2.0
// Which freed GPU memory a thread may use again at once.
#pragma once

#include <cstdint>

#include "gpups/stream.hpp"

namespace gpups::kernels {

// A thread or a stream. Work on the memory that one user frees precedes the work that it queues later.
using MemoryUser = std::uint64_t;
MemoryUser new_memory_user();

// In a scope, this thread queues all work on GPU memory that it allocates or frees on one stream. So it may use blocks
// at once that were freed in a scope of the same stream, by any thread, and no others. A thread that makes progress
// for others works on their streams in turn, each in its scope. A scope of a host stream changes nothing.
class MemoryScope {
 public:
  explicit MemoryScope(Stream const& stream);
  ~MemoryScope();
  MemoryScope(MemoryScope const&) = delete;
  MemoryScope& operator=(MemoryScope const&) = delete;

 private:
  MemoryUser before_;
};

// Returns the stream of the innermost scope of this thread or, outside of scopes, the thread.
MemoryUser memory_user();

}  // namespace gpups::kernels
