// SPDX-License-Identifier: Apache-2.0
// Sums of values of streams, floats or whole units: units that a faulty peer sends may leave 64 bits, and then wrap.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gpups::kernels {

template <class T>
constexpr T plus(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
constexpr T minus(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  } else {
    return a - b;
  }
}

}  // namespace gpups::kernels
