// SPDX-License-Identifier: Apache-2.0
// Stateless random numbers: a hash of a list of numbers that describes their purpose. They are the same on every rank
// and machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <random>

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

// Random numbers with a Zipf distribution, for keys with the frequencies of categories or words.

// A Zipf distribution of 0 .. values - 1: the probability of k is proportional to 1 / (k + 1)^exponent. Source:
// rejection-inversion (Hoermann and Derflinger, ACM TOMACS 6(3), 1996).
class Zipf {
 public:
  // REQUIRES: values > 0, exponent > 0 and exponent != 1.
  Zipf(std::size_t values, double exponent)
      : values_(static_cast<double>(values)),
        exponent_(exponent),
        low_(area(1.5) - 1),
        high_(area(values_ + .5)),
        always_accepted_(2 - inverse(area(2.5) - weight(2))) {}

  // Draws a number. Cost: three powers at most, for most draws one.
  std::uint64_t operator()(std::mt19937_64& random) const {
    while (true) {
      double const u = high_ + uniform(random) * (low_ - high_);
      double const x = inverse(u);
      double const k = std::clamp(std::round(x), 1.0, values_);
      if (k - x <= always_accepted_ || u >= area(k + .5) - weight(k)) return static_cast<std::uint64_t>(k) - 1;
    }
  }

 private:
  static double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
  double weight(double x) const { return std::pow(x, -exponent_); }
  // The integral of weight() from 1 to x, and its inverse function.
  double area(double x) const { return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_); }
  double inverse(double u) const { return std::pow(1 + u * (1 - exponent_), 1 / (1 - exponent_)); }

  double values_, exponent_;
  double low_, high_;       // bounds of the uniform numbers
  double always_accepted_;  // a draw is accepted if it was rounded up by at most this number
};

}  // namespace gpups::trainer
