// SPDX-License-Identifier: Apache-2.0
// Changes the lifecycle of rows, except for updates. A lifecycle has two words (see row_lifecycle.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Sets found[i] to 1 if row ids[i] exists, else to 0. Sets ids[i] to kNoRow if the row does not exist.
struct RowsExist {
  Rows<std::uint32_t const> lifecycle;
  View<std::uint32_t> ids;   // (n), may hold kNoRow
  View<std::uint8_t> found;  // (n), or empty
  bool or_wait = false;      // true: rows that wait for admission count as rows that exist
};
void rows_exist(Stream& stream, RowsExist const& arguments);

// Sets bit i % 32 of bitmap[i / 32] for the rows ids[i] that exist, and clears all others.
struct MarkExisting {
  Rows<std::uint32_t const> lifecycle;
  View<std::uint32_t const> ids;  // (n)
  View<std::uint32_t> bitmap;     // (bitmap_words(n))
  bool or_wait = false;           // true: rows that wait for admission count as rows that exist
};
// Does so for many lists in one launch.
void mark_existing(Stream& stream, std::span<MarkExisting const> lists);

// Makes rows exist that do not, without an update. Sets the step of all rows.
struct BeginRows {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;  // (n), distinct
  std::uint32_t step;             // low half of the step's number
};
void begin_rows(Stream& stream, BeginRows const& arguments);

// Adds the occurrences of keys in a batch to the rows that do not exist, which then wait for admission.
struct CountOccurrences {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;         // (n), distinct
  View<std::uint32_t const> offsets;     // (n + 1): row ids[i] has offsets[i + 1] - offsets[i] entries
  std::uint32_t step;                    // low half of the step's number
  View<std::int64_t const> counts = {};  // (n): occurrences, if not empty; then `offsets` is not used
};
// Adds those of many lists, which may have rows in common if they are of the same step.
void count_occurrences(Stream& stream, std::span<CountOccurrences const> lists);
inline void count_occurrences(Stream& stream, CountOccurrences const& list) { count_occurrences(stream, {&list, 1}); }

// Makes rows free.
struct EndRows {
  Rows<std::uint32_t> lifecycle;
  View<std::uint32_t const> ids;  // (n), may hold kNoRow
};
void end_rows(Stream& stream, EndRows const& arguments);

// Makes rows free whose last update or occurrence is more than `age` steps before `now`.
struct ExpireRows {
  Rows<std::uint32_t> lifecycle;
  std::size_t rows;              // numbers 0 .. rows - 1
  std::uint32_t now;             // low half of the number of a step
  std::uint32_t age;             // in steps
  View<std::uint64_t> existing;  // (1): the number of them that existed is added
};
void expire_rows(Stream& stream, ExpireRows const& arguments);

}  // namespace gpups::kernels
