// SPDX-License-Identifier: Apache-2.0
// The state of the emulated CUDA runtime: its lock, its streams, its errors and its counts.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tests/emulator/machine/counters.hpp"

namespace gpups::emulator {

// Held during each call of the runtime, and while kernels execute: they execute one at a time.
std::recursive_mutex& runtime_mutex();
using RuntimeLock = std::lock_guard<std::recursive_mutex>;

// Queues work on a stream, or executes it at once; see Options::lazy. A KernelError that it throws is reported by the
// next call that waits.
void enqueue(cudaStream_t stream, std::function<void()> work);
// The same for work that may wait for another rank: it is called until it returns true.
using PolledWork = std::function<bool()>;
void enqueue_polled(cudaStream_t stream, PolledWork work);
// Executes all work of a stream, or of all streams of a device. The lock, held once, is released while they wait.
void drain(cudaStream_t stream);
void drain_device(int device);
// Returns the device of a stream.
int device_of(cudaStream_t stream);
// Returns the current device of the calling thread.
int current_device();
// The devices with a context: those that were set, and those that were current in a call that needs one.
std::set<int>& contexts();
// Creates a context on the current device, unless there is one.
void use_context();
// Returns whether `device` may access the memory of `other`: cudaDeviceEnablePeerAccess() was called.
bool is_peer_enabled(int device, int other);

// Returns what was wrong in the last error that was reported; empty if there was none.
std::string const& last_report();
// Prints what is wrong, and returns the error, which is also that of cudaGetLastError().
cudaError_t report(cudaError_t error, std::string const& what);
// The same for work that was executed: the next call that waits returns the error.
void report_async(KernelError const& error);
// Returns the error, which is also that of cudaGetLastError(), without a report: programs expect it.
cudaError_t fail(cudaError_t error);
// Returns the error of work that was executed since the last call, for calls that wait.
cudaError_t take_async_error();

// What the process has done so far on all devices.
struct RuntimeCounts {
  std::uint64_t launches = 0;
  std::uint64_t stream_waits = 0, event_waits = 0, event_queries = 0;
  struct Copies {
    std::uint64_t count = 0, bytes = 0;
  } to_device, to_host, within_device, fills;
  std::uint64_t pageable_copies = 0;  // of these copies: those from or to host memory that is not pinned
  std::uint64_t allocations = 0, pinned_allocations = 0, events = 0;  // that were created
  std::map<std::string, KernelCounts> kernels;                        // by name
};
RuntimeCounts& runtime_counts();

}  // namespace gpups::emulator
