// SPDX-License-Identifier: Apache-2.0
// Whether numbers that a caller gave point at something: row numbers below the number of rows. Reads 4 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct NumbersPart {
  View<std::uint32_t const> numbers;  // (n)
  std::size_t limit;                  // each should be below it
};

struct CheckNumbers {
  std::span<NumbersPart const> parts;
  View<std::uint32_t> bad_rows;  // (parts): the first place whose number is not below the part's limit, or kNoRow
};
void check_numbers(Stream& stream, CheckNumbers const& arguments);

}  // namespace gpups::kernels
