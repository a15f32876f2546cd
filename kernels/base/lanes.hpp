// SPDX-License-Identifier: Apache-2.0
// A team of lanes, which processes a row: 16 threads of a GPU, or the vector unit of one host thread. Both have the
// same functions, so the body of a kernel is written once.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/base/function.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
// The exchange of values between the 32 threads of a warp. Code that takes the warp as a parameter uses DeviceWarp on a
// GPU, and an emulation with the same members in tests (tests/kernels/score/warp_emulator.hpp).
//
// threads: the callers, one bit each. REQUIRES: all of them call, with the same `threads`.
struct DeviceWarp {
  // Orders memory: all threads may then read what any thread wrote before.
  __device__ void sync(unsigned threads) const { __syncwarp(threads); }
  // Returns the value of thread number `from` in the caller's group of `width` neighbouring threads.
  template <class T>
  __device__ T shuffle(unsigned threads, T value, unsigned from, unsigned width = 32) const {
    return __shfl_sync(threads, value, static_cast<int>(from), static_cast<int>(width));
  }
  // Returns the value of the thread whose number differs from the caller's in the bits of `distance`.
  template <class T>
  __device__ T shuffle_xor(unsigned threads, T value, unsigned distance) const {
    return __shfl_xor_sync(threads, value, static_cast<int>(distance));
  }
  // Returns the threads whose `vote` is true.
  __device__ unsigned ballot(unsigned threads, bool vote) const { return __ballot_sync(threads, vote); }
  // Returns the threads whose value equals that of the caller. T has 4 or 8 bytes.
  template <class T>
  __device__ unsigned match(unsigned threads, T value) const {
    return __match_any_sync(threads, value);
  }
};
#endif

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
using NativeLanes = DeviceLanes;
#else
using NativeLanes = HostLanes;
#endif

}  // namespace gpups::kernels
