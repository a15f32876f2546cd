// SPDX-License-Identifier: Apache-2.0
// Waits and copies within kernel functions, which the counters of the stream include.
#pragma once

#include <cstddef>

#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
// Blocks until the stream is done. doing: for the error message, such as "waiting for a count".
inline void wait_for(DeviceExec ex, char const* doing) {
  ex.counters->count_wait();
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ex.stream)), doing);
}

// Queue a copy of `bytes` bytes. `to` or `from` must stay valid until the stream is done.
inline void copy_to_host(DeviceExec ex, void* to, void const* from, std::size_t bytes, char const* doing) {
  ex.counters->count_host_copy(bytes);
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), doing);
}
inline void copy_to_device(DeviceExec ex, void* to, void const* from, std::size_t bytes, char const* doing) {
  ex.counters->count_host_copy(bytes);
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), doing);
}

// Queues a copy of few bytes. `from` may change after the call.
inline void send_to_device(DeviceExec ex, void* to, void const* from, std::size_t bytes) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "reading the current device");
  ex.counters->count_host_copy(bytes);
  ex.uploads->copy(device, ex.stream, to, from, bytes);
}

// Copies a value to the host. Blocks until the stream is done.
template <class T>
T wait_read(DeviceExec ex, T const* from, char const* doing) {
  T value{};
  copy_to_host(ex, &value, from, sizeof value, doing);
  wait_for(ex, doing);
  return value;
}
#else
// Counts a wait at a place where a GPU has one.
inline void wait_for(HostExec ex, char const*) { ex.counters->count_wait(); }
#endif

}  // namespace gpups::kernels
