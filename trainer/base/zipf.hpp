// SPDX-License-Identifier: Apache-2.0
// Random numbers with a Zipf distribution, for keys with the frequencies of categories or words.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace gpups::trainer {

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
