// SPDX-License-Identifier: Apache-2.0
// What is learnt from a number that may be of any size, or missing (not a number).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gpups::trainer {

// Its logarithm, both ways from 0; 0 where it is missing.
inline float log_of_number(float x) {
  if (std::isnan(x)) return 0;
  return std::copysign(std::log1p(std::fabs(x)), x);
}

// The id of its bucket, as of a category's value. From 1 on there are `each_doubling` buckets from a number to its
// double; below, numbers that have the same floor share one; missing ones have the first.
inline std::uint64_t bucket_of_number(float x, std::uint32_t each_doubling) {
  if (std::isnan(x)) return 0;
  if (x >= 1)
    return 1 + static_cast<std::uint64_t>(each_doubling * std::min(std::log2(static_cast<double>(x)), 1024.0));
  auto const floor = static_cast<std::int32_t>(std::max(std::floor(x), -2e9F));
  return std::uint64_t{1} << 32 | static_cast<std::uint32_t>(floor);
}

}  // namespace gpups::trainer
