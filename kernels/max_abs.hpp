// SPDX-License-Identifier: Apache-2.0
// The largest absolute value of some floats: what tells that sums of them stay in their range.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Infinity where one is not finite; the same for all lanes.
GPUPS_FN inline float max_abs(NativeLanes lanes, float const* x, std::size_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
#ifdef __CUDACC__
  return lanes.max(0.0F, n, [=](std::size_t j) {
    float const a = fabsf(x[j]);
    return a <= std::numeric_limits<float>::max() ? a : kInfinity;
  });
#else
  // Without their signs, floats are in the order of their bits, and what is not a number is above infinity.
  static_cast<void>(lanes);
  std::uint32_t part[kLanes] = {};
  auto const take = [&](std::size_t j, std::size_t k) {
    part[k] = std::max(part[k], std::bit_cast<std::uint32_t>(x[j + k]) & 0x7FFFFFFFU);
  };
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < kLanes; ++k) take(j, k);
  }
  for (std::size_t k = 0; j + k < n; ++k) take(j, k);
  std::uint32_t const most = *std::max_element(part, part + kLanes);
  return std::min(most, std::bit_cast<std::uint32_t>(kInfinity)) == most ? std::bit_cast<float>(most) : kInfinity;
#endif
}

// *most = max(*most, value), of numbers that are not negative.
GPUPS_FN inline void atomic_max(float* most, float value) {
#ifdef __CUDACC__
  if (value > *most) atomicMax(reinterpret_cast<int*>(most), __float_as_int(value));
#else
  std::atomic_ref<float> shared(*most);
  float seen = shared.load(std::memory_order_relaxed);
  while (value > seen && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
#endif
}

}  // namespace gpups::kernels
