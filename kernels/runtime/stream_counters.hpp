// SPDX-License-Identifier: Apache-2.0
// Counts what a program pays for apart from the work itself: launches, waits, and copies between host and device.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpups::kernels {

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
  std::atomic<std::uint64_t> launches = 0, waits = 0, host_copies = 0;

  void count_launch() { launches.fetch_add(1, std::memory_order_relaxed); }
  void count_wait() { waits.fetch_add(1, std::memory_order_relaxed); }
  void count_host_copy() { host_copies.fetch_add(1, std::memory_order_relaxed); }
};

}  // namespace gpups::kernels
