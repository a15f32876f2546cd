// SPDX-License-Identifier: Apache-2.0
// Stateless random numbers: a hash of a list of numbers that describes their purpose. They are the same on every rank
// and machine.
#pragma once

#include <concepts>
#include <cstdint>

#include "kernels/base/hash.hpp"

namespace gpups::trainer {

// Hashes x. Unlike kernels::mix, it does not map 0 to 0.
constexpr std::uint64_t mix(std::uint64_t x) { return kernels::mix(x + 0x9E3779B97F4A7C15U); }

// Returns random bits for a list of numbers, for example random_bits(seed, epoch, window, draw).
template <std::integral... N>
constexpr std::uint64_t random_bits(std::uint64_t first, N... rest) {
  std::uint64_t state = mix(first);
  ((state = mix(state ^ static_cast<std::uint64_t>(rest))), ...);
  return state;
}

// The same for many lists with a common beginning, which is hashed once: RandomBits(seed, epoch)(draw) is
// random_bits(seed, epoch, draw).
class RandomBits {
 public:
  template <std::integral... N>
  constexpr explicit RandomBits(std::uint64_t first, N... rest) : state_(random_bits(first, rest...)) {}
  constexpr std::uint64_t operator()(std::uint64_t last) const { return mix(state_ ^ last); }

 private:
  std::uint64_t state_;
};

// Converts random bits to a number below `end`. The bias is less than end / 2^64.
constexpr std::uint64_t below(std::uint64_t end, std::uint64_t bits) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bits) * end >> 64);
}

}  // namespace gpups::trainer
