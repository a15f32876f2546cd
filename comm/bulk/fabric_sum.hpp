// SPDX-License-Identifier: Apache-2.0
// The arrays of one rank in a sum over all ranks that a device fabric makes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::comm {

struct FabricSum {
  // kInt64: sums modulo 2^64.
  enum class Number : std::uint8_t { kFloat, kInt64 };

  // terms, sums: (n), may be the same memory.
  FabricSum(View<float const> of, View<float> to) : terms(of.data()), sums(to.data()), count(of.size()) {}
  FabricSum(View<std::int64_t const> of, View<std::int64_t> to)
      : terms(of.data()), sums(to.data()), count(of.size()), number(Number::kInt64) {}

  std::size_t bytes() const { return count * (number == Number::kFloat ? sizeof(float) : sizeof(std::int64_t)); }

  void const* terms;
  void* sums;
  std::size_t count;
  Number number = Number::kFloat;
};

}  // namespace gpups::comm
