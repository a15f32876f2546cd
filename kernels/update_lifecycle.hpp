// SPDX-License-Identifier: Apache-2.0
// Begin and end of rows, outside of their updates. A row's lifecycle is two words (see row_lifecycle.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// found[i] = 1 where row ids[i] exists; ids of rows that do not become kNoRow.
struct RowsExist {
  Rows<std::uint32_t const> lifecycle;
  View<std::uint32_t> ids;   // (n), may hold kNoRow
  View<std::uint8_t> found;  // (n), or empty
};
void rows_exist(Stream& stream, RowsExist const& arguments);

// Rows that do not exist begin to, with no update; all are of this step.
struct BeginRows {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;  // (n), distinct
  std::uint32_t step;             // low half
};
void begin_rows(Stream& stream, BeginRows const& arguments);

// Rows that do not exist wait for admission, and have been sighted as often more as their entries in a batch say.
struct CountOccurrences {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;         // (n), distinct
  View<std::uint32_t const> offsets;     // (n + 1): row ids[i] has offsets[i + 1] - offsets[i] entries, or
  std::uint32_t step;                    // low half
  View<std::int64_t const> counts = {};  // (n): as many as this says; then `offsets` are not used
};
void count_occurrences(Stream& stream, CountOccurrences const& arguments);

// Rows are as if nobody had ever named them.
struct EndRows {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;  // (n), may hold kNoRow
};
void end_rows(Stream& stream, EndRows const& arguments);

// The same for the rows that were last updated, or sighted, more than `age` steps before `now`.
struct ExpireRows {
  Rows<std::uint32_t> lifecycle;
  std::size_t rows;              // numbers 0 .. rows - 1
  std::uint32_t now;             // low half of a step
  std::uint32_t age;             // in steps
  View<std::uint64_t> existing;  // (1): those among them that existed are counted in addition
};
void expire_rows(Stream& stream, ExpireRows const& arguments);

}  // namespace gpups::kernels
