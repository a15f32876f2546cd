// SPDX-License-Identifier: Apache-2.0
// The space in which a kernel body runs, as a type: work for one space cannot be passed to the other. And the counters
// of a stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "gpups/stream.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/base/host_level.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::kernels {

// What a program pays for apart from the work itself: launches, waits, and copies between host and device.
//
// The counters of a stream and its siblings. Any thread.
//
// A launch is a CUDA kernel or an algorithm of CUB or cuBLAS; on a host stream it is a call of a kernel function,
// however many loops that function has. Calls in a body of parallel_for() count as one launch together.
//
// A wait blocks until the stream is done: Stream::wait(), or a function with `wait` in its name that reads a result
// back. On a host stream the same calls count, although they return at once, so that tests without a GPU can count
// them.
//
// Copies between host memory and device memory are host copies. A host stream has none.
struct StreamCounters {
  std::atomic<std::uint64_t> launches = 0, waits = 0, host_copies = 0, host_bytes = 0;  // bytes of these copies

  void count_launch() { launches.fetch_add(1, std::memory_order_relaxed); }
  void count_wait() { waits.fetch_add(1, std::memory_order_relaxed); }
  void count_host_copy(std::size_t bytes) {
    host_copies.fetch_add(1, std::memory_order_relaxed);
    host_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
};

class Arena;
class UploadBuffer;

enum class Space { kHost, kDevice };

// What a body needs to run: an arena on the host, a CUDA stream on a GPU.
template <Space S>
struct Exec;
template <>
struct Exec<Space::kHost> {
  Arena* arena;
  StreamCounters* counters;
};
template <>
struct Exec<Space::kDevice> {
  void* stream;                    // cudaStream_t
  std::shared_ptr<void>* library;  // data that a library keeps for the stream; null before its first use
  StreamCounters* counters;
  UploadBuffer* uploads;
};
using HostExec = Exec<Space::kHost>;
using DeviceExec = Exec<Space::kDevice>;

// The space that is being compiled.
#ifdef __CUDACC__
using NativeExec = DeviceExec;
#else
using NativeExec = HostExec;
#endif

// Return what bodies need on the device of a stream. While a body runs on a GPU, that device must be the current one.
// host_exec() counts a launch. REQUIRES: a stream of this space.
HostExec host_exec(Stream const& stream);
DeviceExec device_exec(Stream const& stream);

}  // namespace gpups::kernels

// Stands at the end of kernels/NAME.cu, once for each pair of a function and its arguments. Each compiler instantiates
// the body for its space, and the C++ compiler for each level. The object for level 0 also gets the function that
// callers use, which selects the space by the device of the stream.
#ifdef __CUDACC__
#define GPUPS_KERNEL(name, Arguments) template void run(DeviceExec, Arguments const&);
#elif defined(GPUPS_COMPILED_LEVEL)
#define GPUPS_KERNEL(name, Arguments) GPUPS_HOST_KERNEL(void, name, Arguments)
#elif GPUPS_HAS_CUDA
#define GPUPS_KERNEL(name, Arguments)                                                            \
  extern template void run(DeviceExec, Arguments const&);                                        \
  void name(Stream& stream, Arguments const& arguments) {                                        \
    if (stream.device().is_host()) return run_at_host_level<void>(host_exec(stream), arguments); \
    cuda::CurrentDevice const current(stream.device().index);                                    \
    run(device_exec(stream), arguments);                                                         \
  }
#else
#define GPUPS_KERNEL(name, Arguments) GPUPS_HOST_KERNEL(void, name, Arguments)
#endif

// The same for a function that only exists on the host; its body is run(HostExec, Arguments const&). If it is a
// template, GPUPS_HOST_KERNEL_OF instantiates it, and its definition is a call of run_at_host_level().
#ifdef GPUPS_COMPILED_LEVEL
#define GPUPS_HOST_KERNEL_OF(Result, name, Arguments)                            \
  template <>                                                                    \
  Result run_at<GPUPS_COMPILED_LEVEL>(HostExec ex, Arguments const& arguments) { \
    return run(ex, arguments);                                                   \
  }
#define GPUPS_HOST_KERNEL(Result, name, Arguments)         \
  Result name(Stream& stream, Arguments const& arguments); \
  GPUPS_HOST_KERNEL_OF(Result, name, Arguments)
#else
#define GPUPS_HOST_KERNEL_OF(Result, name, Arguments) template Result name(Stream&, Arguments const&);
#define GPUPS_HOST_KERNEL(Result, name, Arguments)                  \
  Result name(Stream& stream, Arguments const& arguments) {         \
    return run_at_host_level<Result>(host_exec(stream), arguments); \
  }
#endif
