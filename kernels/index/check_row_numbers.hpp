// SPDX-License-Identifier: Apache-2.0
// Checks that row numbers from a caller are below the number of rows, such as the source indices of a push. Reads 4
// bytes per number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct RowNumbersPart {
  View<std::uint32_t const> numbers;  // (n)
  std::size_t limit;                  // valid numbers are below it
};

struct CheckRowNumbers {
  std::span<RowNumbersPart const> parts;
  View<std::uint32_t> bad_rows;  // (parts), output: index of the first number that is not valid, or kNoRow
};
void check_row_numbers(Stream& stream, CheckRowNumbers const& arguments);

}  // namespace gpups::kernels
