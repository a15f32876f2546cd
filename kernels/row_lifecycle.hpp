// SPDX-License-Identifier: Apache-2.0
// What the two words of a row's lifecycle say: what has become of the row, and in which step that was last.
//
// The first is 0 while the row is only reserved or free, kWaiting + its occurrences while it waits for admission, and
// 1 + the number of its updates once it exists. The second is the low half of the step: ages are told apart up to 2^32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kLifecycleWords = 2;
inline constexpr std::uint32_t kWaiting = std::uint32_t{1} << 31;
// The most occurrences, and updates, that are counted.
inline constexpr std::uint32_t kCountedMax = kWaiting - 1;

GPUPS_FN inline bool exists(std::uint32_t word) { return word != 0 && word < kWaiting; }
GPUPS_FN inline bool waits(std::uint32_t word) { return word >= kWaiting; }

// Whether a row may be updated that is admitted at its n-th occurrence.
GPUPS_FN inline bool is_admitted(std::uint32_t word, std::uint32_t n) {
  return exists(word) || (waits(word) && word - kWaiting >= n);
}

GPUPS_FN inline std::uint32_t after_update(std::uint32_t word) {
  if (!exists(word)) return 2;
  return word < kCountedMax ? word + 1 : word;
}

// REQUIRES: !exists(word).
GPUPS_FN inline std::uint32_t after_sightings(std::uint32_t word, std::uint32_t more) {
  std::uint64_t const all = std::uint64_t{waits(word) ? word - kWaiting : 0} + more;
  return kWaiting + static_cast<std::uint32_t>(all < kCountedMax ? all : kCountedMax);
}

}  // namespace gpups::kernels
