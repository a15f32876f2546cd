// SPDX-License-Identifier: Apache-2.0
// Which freed memory of a GPU may be used again: at once by its user, and by others when the queued work is done.
#pragma once

#include <cstdint>
#include <vector>

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

// Frees the blocks of arrays that are kept for later arrays. Waits for the device.
void release_kept_memory(Device device) noexcept;

// Every Stream of a CUDA device is added when it is created, and removed before its cudaStream_t is destroyed. Any
// thread. add_stream() returns the memory user of the cudaStream_t.
MemoryUser add_stream(Device device, void* native);
void remove_stream(Device device, void* native) noexcept;

// The work that was queued on all streams of a device when this was constructed.
class QueuedWork {
 public:
  explicit QueuedWork(Device device);
  // Returns whether all of it is done. Does not block.
  bool done();

 private:
  std::vector<Event> last_;  // of the streams whose work is not done
};

}  // namespace gpups::kernels
