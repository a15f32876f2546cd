// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine: number i is a hash of seed and i (splitmix64).
#pragma once

#include <cstdint>

#include "kernels/base/hash.hpp"

namespace gpups::comm {

// A sequence of random numbers.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return kernels::mix(state_ += 0x9E3779B97F4A7C15U); }
  // Returns a number below `n`, which is not 0. Slightly biased.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  // Returns true with the given probability.
  bool chance(double probability) { return static_cast<double>(next() >> 11) < probability * 0x1p53; }

 private:
  std::uint64_t state_;
};

}  // namespace gpups::comm
