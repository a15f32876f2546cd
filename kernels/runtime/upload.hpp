// SPDX-License-Identifier: Apache-2.0
// Copies of few bytes between the host and a device: the bytes go through pinned memory of the stream. For those to the
// device no thread waits.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/runtime/host_memory.hpp"

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
  // Returns pinned memory for a copy from the device, which is done when the stream is; valid until the next call.
  std::byte* place(int device, std::size_t bytes) { return take(device, bytes).memory.get(); }
  // Blocks until the copies to the device are done.
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

// Copies bytes from the host to the stream's device, on a GPU through pinned memory. `from` may change after the call.
// Queued on `stream`.
void upload_bytes(Stream& stream, void* to, void const* from, std::size_t bytes);

// The same for elements. REQUIRES: to.size() >= from.size().
template <class T>
void upload(Stream& stream, View<T> to, std::span<std::type_identity_t<T> const> from) {
  upload_bytes(stream, to.data(), from.data(), from.size_bytes());
}

// Returns a copy of `from` on the stream's device, which may change after the call. Queued on `stream`.
template <class T>
Array<T> uploaded(Stream& stream, std::vector<T> const& from) {
  Array<T> to(stream.device(), from.size());
  upload_bytes(stream, to.data(), from.data(), from.size() * sizeof(T));
  return to;
}

}  // namespace gpups::kernels
