// SPDX-License-Identifier: Apache-2.0
// Small copies to a GPU that no thread waits for: the bytes go through pinned memory of the stream.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/runtime/pinned.hpp"

namespace gpups::kernels {

// The pinned memory of one CUDA stream. For one thread at a time, as the stream itself.
class UploadBuffer {
 public:
  UploadBuffer() = default;
  // REQUIRES: wait() was called after the last copy.
  ~UploadBuffer();
  UploadBuffer(UploadBuffer const&) = delete;
  UploadBuffer& operator=(UploadBuffer const&) = delete;

  // Queues a copy of `bytes` bytes from the host to `to` on the stream. `from` may change after the call.
  void copy(int device, void* stream, void* to, void const* from, std::size_t bytes);
  // Blocks until the copies are done.
  void wait() noexcept;

 private:
  struct PinnedBlock {
    PinnedPtr memory;
    std::size_t bytes;
    int device;
    void* event;  // after the last copy
  };
  // Returns a block that no copy uses.
  PinnedBlock& take(int device, std::size_t bytes);

  std::vector<PinnedBlock> blocks_;
};

}  // namespace gpups::kernels
