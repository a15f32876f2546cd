// SPDX-License-Identifier: Apache-2.0
// The two words of a row's lifecycle: its state, and the step of its last use.
//
// The first word is 0 if the row is free or only reserved, kWaiting + its occurrences if it waits for admission, and
// 1 + the number of its updates if it exists. The second word is the low half of the step, so ages below 2^32 steps
// are distinguished.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/types.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kLifecycleWords = 2;
inline constexpr std::uint32_t kWaiting = std::uint32_t{1} << 31;
// Counts of occurrences and of updates do not exceed this number.
inline constexpr std::uint32_t kCountedMax = kWaiting - 1;

// Returns the second word of a step.
constexpr std::uint32_t lifecycle_step(Clock clock) { return static_cast<std::uint32_t>(number(clock)); }

GPUPS_FN inline bool exists(std::uint32_t word) { return word != 0 && word < kWaiting; }
GPUPS_FN inline bool waits(std::uint32_t word) { return word >= kWaiting; }

// Returns whether a row may be updated if rows are admitted at their n-th occurrence.
GPUPS_FN inline bool is_admitted(std::uint32_t word, std::uint32_t n) {
  return exists(word) || (waits(word) && word - kWaiting >= n);
}

// Returns the first word after an update.
GPUPS_FN inline std::uint32_t after_update(std::uint32_t word) {
  if (!exists(word)) return 2;
  return word < kCountedMax ? word + 1 : word;
}

// Returns the first word after `more` occurrences. REQUIRES: !exists(word).
GPUPS_FN inline std::uint32_t after_occurrences(std::uint32_t word, std::uint32_t more) {
  std::uint64_t const all = std::uint64_t{waits(word) ? word - kWaiting : 0} + more;
  return kWaiting + static_cast<std::uint32_t>(all < kCountedMax ? all : kCountedMax);
}

}  // namespace gpups::kernels
