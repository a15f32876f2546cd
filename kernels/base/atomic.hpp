// SPDX-License-Identifier: Apache-2.0
// Relaxed atomic operations on plain memory, with the same names on host and device.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/base/function.hpp"

namespace gpups::kernels {

// Adds `value`. Returns the previous value.
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

// Writes `value`. Returns the previous value.
GPUPS_FN inline std::uint64_t atomic_exchange(std::uint64_t* at, std::uint64_t value) {
#ifdef __CUDACC__
  return atomicExch(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
#else
  return std::atomic_ref(*at).exchange(value, std::memory_order_relaxed);
#endif
}

GPUPS_FN inline std::uint32_t atomic_exchange(std::uint32_t* at, std::uint32_t value) {
#ifdef __CUDACC__
  return atomicExch(at, value);
#else
  return std::atomic_ref(*at).exchange(value, std::memory_order_relaxed);
#endif
}

GPUPS_FN inline std::uint64_t atomic_load(std::uint64_t const* from) {
#ifdef __CUDACC__
  return *static_cast<std::uint64_t const volatile*>(from);
#else
  return std::atomic_ref(*const_cast<std::uint64_t*>(from)).load(std::memory_order_relaxed);
#endif
}
GPUPS_FN inline std::uint32_t atomic_load(std::uint32_t const* from) {
#ifdef __CUDACC__
  return *static_cast<std::uint32_t const volatile*>(from);
#else
  return std::atomic_ref(*const_cast<std::uint32_t*>(from)).load(std::memory_order_relaxed);
#endif
}

// Writes `value` if the current value is `expected`. Returns the previous value.
GPUPS_FN inline std::uint32_t atomic_exchange_if(std::uint32_t* at, std::uint32_t expected, std::uint32_t value) {
#ifdef __CUDACC__
  return atomicCAS(at, expected, value);
#else
  std::atomic_ref(*at).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
#endif
}
GPUPS_FN inline std::uint64_t atomic_exchange_if(std::uint64_t* at, std::uint64_t expected, std::uint64_t value) {
#ifdef __CUDACC__
  return atomicCAS(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(value));
#else
  std::atomic_ref(*at).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
#endif
}

// Both return the previous value.
GPUPS_FN inline std::uint32_t atomic_or(std::uint32_t* to, std::uint32_t bits) {
#ifdef __CUDACC__
  return atomicOr(to, bits);
#else
  return std::atomic_ref(*to).fetch_or(bits, std::memory_order_relaxed);
#endif
}
GPUPS_FN inline std::uint32_t atomic_and(std::uint32_t* to, std::uint32_t bits) {
#ifdef __CUDACC__
  return atomicAnd(to, bits);
#else
  return std::atomic_ref(*to).fetch_and(bits, std::memory_order_relaxed);
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
