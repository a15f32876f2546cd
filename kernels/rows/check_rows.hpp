// SPDX-License-Identifier: Apache-2.0
// Checks of rows and of row numbers that callers or other ranks have given: values that are not finite, rows that a
// list has twice, numbers without a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Returns the largest float whose nearest number of this data type is finite.
float largest_kept(DataType type);

// Checks that all elements of rows are finite, also in the data type of a table. Reads each element once.
struct CheckValues {
  MatrixView<float const> rows;  // (n, columns)
  float limit;                   // valid elements are from -limit to limit
  View<std::uint32_t> bad_row;   // (1), output: the first row with an element that is not valid, or NaN; or kNoRow
};
void check_values(Stream& stream, CheckValues const& arguments);

// Finds a row that a list has more than once, in many lists at once. Moves 20 bytes per row.
struct RepeatedIds {
  View<std::uint32_t const> ids;  // (n); may hold kNoRow, any number of times
  // Used on the host only; on a GPU, several lists of a table are searched at once, in a hash table.
  Rows<std::uint64_t> mark;      // stride 1: marks of rows; those of the list are overwritten
  std::uint32_t epoch;           // identifies the list; no mark has it in its high half before the call
  View<std::uint32_t> repeated;  // (1), kNoRow before the call; after it the smallest repeated row, if there is one
};
// Lists may be of the same table, with different epochs. Together they have less than 2^32 rows.
void repeated_ids(Stream& stream, std::span<RepeatedIds const> lists);
inline void repeated_ids(Stream& stream, RepeatedIds const& list) { repeated_ids(stream, {&list, 1}); }

// Checks that row numbers from a caller are below the number of rows, such as the source indices of a push. Reads 4
// bytes per number.

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
