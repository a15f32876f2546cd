// SPDX-License-Identifier: Apache-2.0
// How what lies between two codes is rounded, and what the dice for that depend on.
#pragma once

#include <cstdint>

namespace gpups::kernels {

enum class Rounding { kNearest, kStochastic };

// Row i of a call has the random numbers of (seed, use, first_row + i): calls that share these round alike.
struct RoundingKey {
  std::uint64_t seed = 0;
  std::uint32_t use = 0;  // tells calls with the same seed apart, such as a step's number
  std::uint64_t first_row = 0;
};

}  // namespace gpups::kernels
