// SPDX-License-Identifier: Apache-2.0
// The work that is queued on a CUDA device, on whatever streams.
#pragma once

#include <vector>

#include "gpups/stream.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::kernels {

// Every Stream of a CUDA device is added when it is created, and removed before its cudaStream_t is destroyed. Any
// thread. add_stream() returns the memory user of the cudaStream_t, see memory_scope.hpp.
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
