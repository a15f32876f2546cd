// SPDX-License-Identifier: Apache-2.0
// The largest absolute value of floats. It bounds sums of them, so that they need not be checked for overflow.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/atomic.hpp"
#include "kernels/base/function.hpp"
#include "kernels/base/lanes.hpp"

namespace gpups::kernels {

// Returns the largest |x[j]| for j < n, or infinity if one of them is not finite, to all lanes.
GPUPS_FN inline float max_abs(NativeLanes lanes, float const* x, std::size_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
#ifdef __CUDACC__
  return lanes.max(0.0F, n, [=](std::size_t j) {
    float const a = fabsf(x[j]);
    return a <= std::numeric_limits<float>::max() ? a : kInfinity;
  });
#else
  // Floats without signs have the order of their bits, and NaN is above infinity.
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

// Sets *most to max(*most, value). REQUIRES: both are at least 0.
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
