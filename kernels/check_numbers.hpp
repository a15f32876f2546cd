// SPDX-License-Identifier: Apache-2.0
// Checks that row numbers from a caller are below the number of rows. Reads 4 bytes per number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct NumbersPart {
  View<std::uint32_t const> numbers;  // (n)
  std::size_t limit;                  // valid numbers are below it
};

struct CheckNumbers {
  std::span<NumbersPart const> parts;
  View<std::uint32_t> bad_rows;  // (parts), output: index of the first number that is not valid, or kNoRow
};
void check_numbers(Stream& stream, CheckNumbers const& arguments);

}  // namespace gpups::kernels
