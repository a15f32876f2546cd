// SPDX-License-Identifier: Apache-2.0
// Relaxed atomic operations on plain memory, the same words on host and device.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/launch.hpp"

namespace gpups::kernels {

// Adds and returns what was there before.
GPUPS_FN inline std::uint32_t atomic_add(std::uint32_t* to, std::uint32_t value) {
#ifdef __CUDACC__
  return atomicAdd(to, value);
#else
  return std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed);
#endif
}

GPUPS_FN inline void atomic_add(std::uint64_t* to, std::uint64_t value) {
#ifdef __CUDACC__
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
#else
  std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed);
#endif
}

GPUPS_FN inline void atomic_min(std::uint32_t* to, std::uint32_t value) {
#ifdef __CUDACC__
  atomicMin(to, value);
#else
  std::atomic_ref<std::uint32_t> least(*to);
  std::uint32_t seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
#endif
}

}  // namespace gpups::kernels
