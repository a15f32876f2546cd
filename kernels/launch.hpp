// SPDX-License-Identifier: Apache-2.0
// Runs the bodies of kernels. A kernel is a loop over elements, each(), or over rows, each_row(). Its body is written
// once, for host and GPU, and marked GPUPS_FN. No other file launches CUDA kernels.
//
// A row is processed by a team of lanes: 16 threads of a GPU, or the vector unit of one host thread.
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
// GPUPS_INLINED_FN is for functions that take closures, and for functions that only prefetch, which g++ drops if they
// are not inlined. A function that is not inlined reads its closure from memory, and a closure that was just written
// reaches the cache only after the rows that are being loaded. GPUPS_INLINED_BODY is for the closures themselves. With
// sanitizers neither forces inlining, because that would take the compiler minutes.
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

// The number of lanes of a team, and of partial sums of a reduction on any machine.
inline constexpr std::size_t kLanes = 16;

// The team of lanes of a row on the host.
struct HostLanes {
  // Calls f(j) for j < n, in any order. REQUIRES: calls for different j touch different elements.
  template <class F>
  void each(std::size_t n, F f) const {
#pragma GCC ivdep
    for (std::size_t j = 0; j < n; ++j) f(j);
  }
  // Returns the sum of f(j) for j < n, to all lanes. Element j is added to partial sum j % 16, and partial sums are
  // added in pairs of equal distance, so the order is the same on every machine and in every space.
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
  // Returns the sum of the 64-bit words f(j) for j < n, modulo 2^64, to all lanes.
  template <class F>
  std::uint64_t sum_words(std::size_t n, F f) const {
    std::uint64_t sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += f(j);
    return sum;
  }
  // Returns the largest of the words f(j) for j < n, or 0 if n is 0, to all lanes. Calls f once for each j.
  template <class F>
  std::uint32_t max_word(std::size_t n, F f) const {
    std::uint32_t most = 0;
    for (std::size_t j = 0; j < n; ++j) {
      std::uint32_t const word = f(j);
      most = word > most ? word : most;
    }
    return most;
  }
  // Prefetches memory that a later row will read. A GPU hides the latency with other teams instead. Always inlined,
  // because g++ drops calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(void const* from, std::size_t bytes) const {
    for (std::size_t b = 0; b < bytes; b += 64) __builtin_prefetch(static_cast<char const*>(from) + b);
  }
  // Returns the largest of `least` and f(j) for j < n, to all lanes. Ignores NaN.
  template <class F>
  float max(float least, std::size_t n, F f) const {
    typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
    Floats part = Floats{} + least;
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      float x[kLanes];
      // Not unrolled, so that it becomes vector code even if f has conditions.
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
  // Returns true in one lane, which writes what is written once per row.
  bool first() const { return true; }
  // Orders memory: all lanes may then read what any lane wrote before.
  void sync() const {}
};

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

// The same team as 16 threads of a warp. Warp: DeviceWarp, or an emulation in tests.
template <class Warp>
struct WarpLanes {
  unsigned lane;  // 0 .. 15
  unsigned mask;  // the bits of the team in its warp
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
  // Exchanges `high` of lane 2 k with `low` of lane 2 k + 1. A lane that needs 32 neighbouring bytes would touch half a
  // sector with each access of 16 bytes. Instead each lane of a pair accesses every second word of 16 bytes of the
  // pair's 64, and exchanges. REQUIRES: both lanes of the pair call it.
  template <class T>
  GPUPS_FN void transpose(T& low, T& high) const {
    bool const odd = lane % 2 == 1;
    unsigned const pair = mask & 0x30003U << lane / 2 * 2;  // in either half of the warp
    T const other = warp.shuffle_xor(pair, odd ? low : high, 1);
    (odd ? low : high) = other;
  }
};

#ifdef __CUDACC__
using DeviceLanes = WarpLanes<DeviceWarp>;

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
using NativeLanes = DeviceLanes;
#else
using NativeLanes = HostLanes;
#endif

}  // namespace gpups::kernels
