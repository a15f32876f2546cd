// SPDX-License-Identifier: Apache-2.0
// How bodies run. A kernel is a loop over elements, each(), or over rows, each_row(), whose body is written once and
// marked GPUPS_FN. This is the only file with a launch in it.
//
// A row is handled by a team of lanes: 16 threads of a GPU, or the vector unit of one host thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/arena.hpp"
#include "kernels/space.hpp"
#include "kernels/warp.hpp"

#ifdef __CUDACC__
#include "kernels/cuda_runtime.hpp"
#define GPUPS_FN __device__
#define GPUPS_ANY_FN __host__ __device__
#else
#define GPUPS_FN
#define GPUPS_ANY_FN
#endif
// For functions that are given closures, or that only prefetch, which g++ drops. A function that is not inlined gets
// its closure in memory: one that was just put together must first reach the cache, behind rows that are on their way
// there. And for the closures themselves: whether a product that one returns is rounded before it goes into a sum must
// not depend on who calls. Not with sanitizers, where it takes the compiler minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GPUPS_INLINED_FN GPUPS_FN inline
#define GPUPS_INLINED_BODY
#elif defined(__CUDACC__)
#define GPUPS_INLINED_FN __attribute__((always_inline)) GPUPS_FN inline
#define GPUPS_INLINED_BODY
#else
#define GPUPS_INLINED_FN __attribute__((always_inline)) GPUPS_FN inline
#define GPUPS_INLINED_BODY __attribute__((always_inline))
#endif

namespace gpups::kernels {

// Lanes of a team, and the number of partial sums of a reduction everywhere.
inline constexpr std::size_t kLanes = 16;

// The team of lanes that a row's body is given.
struct HostLanes {
  // Calls f(j) for j < n, in any order. REQUIRES: calls for different j touch different elements.
  template <class F>
  void each(std::size_t n, F f) const {
#pragma GCC ivdep
    for (std::size_t j = 0; j < n; ++j) f(j);
  }
  // The sum of f(j) for j < n, the same for all lanes. Element j goes to partial sum j % 16; these are added in pairs
  // of equal distance, so the order is the same for every machine and space.
  template <class F>
  float sum(std::size_t n, F f) const {
    float part[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
#pragma GCC ivdep
      for (std::size_t k = 0; k < kLanes; ++k) part[k] += f(j + k);
    }
    for (std::size_t k = 0; j + k < n; ++k) part[k] += f(j + k);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) part[k] += part[k + half];
    }
    return part[0];
  }
  // The sum of 64-bit words f(j) for j < n, wrapping; the same for all lanes.
  template <class F>
  std::uint64_t sum_words(std::size_t n, F f) const {
    std::uint64_t sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += f(j);
    return sum;
  }
  // The largest of the words f(j) for j < n, 0 where there are none; the same for all lanes. Calls f once for each j.
  template <class F>
  std::uint32_t max_word(std::size_t n, F f) const {
    std::uint32_t most = 0;
    for (std::size_t j = 0; j < n; ++j) {
      std::uint32_t const word = f(j);
      most = word > most ? word : most;
    }
    return most;
  }
  // Asks for memory that a later row will read. A GPU hides its latency by other teams instead.
  // Always inlined: g++ drops calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(void const* from, std::size_t bytes) const {
    for (std::size_t b = 0; b < bytes; b += 64) __builtin_prefetch(static_cast<char const*>(from) + b);
  }
  // The largest of `least` and f(j) for j < n, the same for all lanes; ignores what is not a number.
  template <class F>
  float max(float least, std::size_t n, F f) const {
    typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
    Floats part = Floats{} + least;
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      float x[kLanes];
      // Not unrolled: then it becomes a vector, conditions in f included.
#pragma GCC ivdep
#pragma GCC unroll 1
      for (std::size_t k = 0; k < kLanes; ++k) x[k] = f(j + k);
      Floats now;
      __builtin_memcpy(&now, x, sizeof now);
      part = now > part ? now : part;
    }
    for (std::size_t k = 0; j + k < n; ++k) {
      float const x = f(j + k);
      part[k] = x > part[k] ? x : part[k];
    }
    for (std::size_t k = 0; k < kLanes; ++k) least = part[k] > least ? part[k] : least;
    return least;
  }
  // True in one lane: for what is written once per row.
  bool first() const { return true; }
  // What one lane wrote before, all lanes may read after.
  void sync() const {}
};

// How many rows ahead a host body prefetches.
inline constexpr std::size_t kRowsAhead = 12;

// Elements or rows of a block: boundaries are fixed by n alone.
inline constexpr std::size_t kBlockElements = 8192;
inline constexpr std::size_t kBlockRows = 128;

template <class F>
void each(HostExec ex, std::size_t n, F f) {
  ex.arena->blocks((n + kBlockElements - 1) / kBlockElements, [&](std::size_t block) {
    std::size_t const first = block * kBlockElements;
    std::size_t const last = first + kBlockElements < n ? first + kBlockElements : n;
#pragma GCC ivdep
    for (std::size_t i = first; i < last; ++i) f(i);
  });
}

template <class F>
void each_row(HostExec ex, std::size_t n, F f) {
  ex.arena->blocks((n + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
    std::size_t const first = block * kBlockRows;
    std::size_t const last = first + kBlockRows < n ? first + kBlockRows : n;
    for (std::size_t i = first; i < last; ++i) f(i, HostLanes{});
  });
}

// The same team as 16 threads of a warp, which is DeviceWarp, or what emulates it in tests.
template <class Warp>
struct WarpLanes {
  unsigned lane;  // 0 .. 15
  unsigned mask;  // of the team in its warp
  [[no_unique_address]] Warp warp{};

  template <class F>
  GPUPS_FN void each(std::size_t n, F f) const {
    for (std::size_t j = lane; j < n; j += kLanes) f(j);
    warp.sync(mask);
  }
  template <class F>
  GPUPS_FN float sum(std::size_t n, F f) const {
    float part = 0;
    for (std::size_t j = lane; j < n; j += kLanes) part += f(j);
    for (unsigned half = kLanes / 2; half > 0; half /= 2) part += warp.shuffle_xor(mask, part, half);
    return part;
  }
  template <class F>
  GPUPS_FN std::uint64_t sum_words(std::size_t n, F f) const {
    unsigned long long part = 0;
    for (std::size_t j = lane; j < n; j += kLanes) part += f(j);
    for (unsigned half = kLanes / 2; half > 0; half /= 2) part += warp.shuffle_xor(mask, part, half);
    return part;
  }
  template <class F>
  GPUPS_FN std::uint32_t max_word(std::size_t n, F f) const {
    std::uint32_t most = 0;
    for (std::size_t j = lane; j < n; j += kLanes) {
      std::uint32_t const word = f(j);
      most = word > most ? word : most;
    }
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      std::uint32_t const other = warp.shuffle_xor(mask, most, half);
      most = other > most ? other : most;
    }
    return most;
  }
  GPUPS_FN void prefetch(void const*, std::size_t) const {}
  template <class F>
  GPUPS_FN float max(float least, std::size_t n, F f) const {
    for (std::size_t j = lane; j < n; j += kLanes) least = fmaxf(least, f(j));
    for (unsigned half = kLanes / 2; half > 0; half /= 2) least = fmaxf(least, warp.shuffle_xor(mask, least, half));
    return least;
  }
  GPUPS_FN bool first() const { return lane == 0; }
  GPUPS_FN void sync() const { warp.sync(mask); }
};

#ifdef __CUDACC__
using DeviceLanes = WarpLanes<DeviceWarp>;

inline constexpr unsigned kBlockThreads = 256;

// __grid_constant__: a body may refer to what it captured, and index it, without a copy for each thread.
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

// Enough blocks for the work, and no more than keep the largest GPU busy.
inline unsigned grid_size(std::size_t threads) {
  std::size_t const blocks = (threads + kBlockThreads - 1) / kBlockThreads;
  return static_cast<unsigned>(blocks < 16384 ? blocks : 16384);
}

template <class F>
void each(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  each_kernel<<<grid_size(n), kBlockThreads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}

template <class F>
void each_row(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  each_row_kernel<<<grid_size(n * kLanes), kBlockThreads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}

// Threads of the blocks of each_block(), if it does not say.
inline constexpr unsigned kBlockThreadsMax = 1024;

template <unsigned Threads, class F>
__global__ void __launch_bounds__(Threads) each_block_kernel(std::size_t n, F f) {
  for (std::size_t i = blockIdx.x; i < n; i += gridDim.x) f(i);
}

// For work too large for a team: f(i) is called by all threads of a block at once, and may use __syncthreads().
template <unsigned Threads = kBlockThreadsMax, class F>
void each_block(DeviceExec ex, std::size_t n, F f) {
  if (n == 0) return;
  auto const blocks = static_cast<unsigned>(n < 2048 ? n : 2048);
  each_block_kernel<Threads><<<blocks, Threads, 0, static_cast<cudaStream_t>(ex.stream)>>>(n, f);
  check_cuda(cudaGetLastError(), "launching a kernel");
}
using NativeLanes = DeviceLanes;
#else
using NativeLanes = HostLanes;
#endif

}  // namespace gpups::kernels
