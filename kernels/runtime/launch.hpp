// SPDX-License-Identifier: Apache-2.0
// Runs the bodies of kernels. A kernel is a loop over elements, each(), or over rows, each_row(). Its body is written
// once, for host and GPU, and marked GPUPS_FN. No other file launches CUDA kernels.
#pragma once

#include <cstddef>

#include "kernels/base/function.hpp"
#include "kernels/base/lanes.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"
#ifdef __CUDACC__
#include "kernels/runtime/cuda_runtime.hpp"
#endif

namespace gpups::kernels {

// The distance, in rows, at which a body prefetches on the host.
inline constexpr std::size_t kRowsAhead = 12;

// The numbers of elements and rows of a block. Boundaries of blocks depend on n alone.
inline constexpr std::size_t kBlockElements = 8192;
inline constexpr std::size_t kBlockRows = 128;

// Calls f(i) for each i < n, in parallel. REQUIRES: except by atomic operations, different i touch different elements.
template <class F>
void each(HostExec ex, std::size_t n, F f) {
  ex.arena->blocks((n + kBlockElements - 1) / kBlockElements, [&](std::size_t block) {
    std::size_t const first = block * kBlockElements;
    std::size_t const last = first + kBlockElements < n ? first + kBlockElements : n;
#pragma GCC ivdep
    for (std::size_t i = first; i < last; ++i) f(i);
  });
}

// Calls f(i, lanes) for each row i < n with a team of lanes, in parallel.
template <class F>
void each_row(HostExec ex, std::size_t n, F f) {
  ex.arena->blocks((n + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
    std::size_t const first = block * kBlockRows;
    std::size_t const last = first + kBlockRows < n ? first + kBlockRows : n;
    for (std::size_t i = first; i < last; ++i) f(i, HostLanes{});
  });
}

#ifdef __CUDACC__
inline constexpr unsigned kBlockThreads = 256;

// With __grid_constant__, a body may index what it captured without a copy for each thread.
template <class F>
__global__ void each_kernel(std::size_t n, __grid_constant__ F const f) {
  std::size_t const step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <class F>
__global__ void each_row_kernel(std::size_t n, F f) {
  unsigned const lane = threadIdx.x % kLanes;
  DeviceLanes const lanes{lane, 0xFFFFU << (threadIdx.x % 32 / kLanes * kLanes)};
  std::size_t const step = std::size_t{gridDim.x} * blockDim.x / kLanes;
  for (std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes; i < n; i += step) f(i, lanes);
}

// Returns the number of blocks for `threads` threads, but not more than keep the largest GPU busy.
inline unsigned grid_size(std::size_t threads) {
  std::size_t const blocks = (threads + kBlockThreads - 1) / kBlockThreads;
  return static_cast<unsigned>(blocks < 16384 ? blocks : 16384);
}

template <class F>
void each(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  ex.counters->count_launch();
  each_kernel<<<grid_size(n), kBlockThreads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}

template <class F>
void each_row(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  ex.counters->count_launch();
  each_row_kernel<<<grid_size(n * kLanes), kBlockThreads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}

// The default number of threads of a block in each_block().
inline constexpr unsigned kBlockThreadsMax = 1024;

template <unsigned Threads, class F>
__global__ void __launch_bounds__(Threads) each_block_kernel(std::size_t n, F f) {
  for (std::size_t i = blockIdx.x; i < n; i += gridDim.x) f(i);
}

// Calls f(i) for each i < n, with all threads of a block, for work that is too large for a team. f may use
// __syncthreads().
template <unsigned Threads = kBlockThreadsMax, class F>
void each_block(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  auto const blocks = static_cast<unsigned>(n < 2048 ? n : 2048);
  ex.counters->count_launch();
  each_block_kernel<Threads><<<blocks, Threads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}
#endif

}  // namespace gpups::kernels
