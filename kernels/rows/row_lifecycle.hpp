// SPDX-License-Identifier: Apache-2.0
// The two words of a row's lifecycle: its state, and the step of its last use.
//
// The first word is 0 if the row is free or only reserved, kWaiting + its occurrences if it waits for admission, and
// 1 + the number of its updates if it exists. The second word is the low half of the step, so ages below 2^32 steps
// are distinguished.
//
// And the kernels that read and change lifecycles, except for updates of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kLifecycleWords = 2;
inline constexpr std::uint32_t kWaiting = std::uint32_t{1} << 31;
// Counts of occurrences and of updates do not exceed this number.
inline constexpr std::uint32_t kCountedMax = kWaiting - 1;

// Returns the second word of a step.
constexpr std::uint32_t lifecycle_step(Clock clock) { return static_cast<std::uint32_t>(number(clock)); }

GPUPS_FN inline bool exists(std::uint32_t word) { return word != 0 && word < kWaiting; }
GPUPS_FN inline bool waits(std::uint32_t word) { return word >= kWaiting; }

// Returns whether a row may be updated if rows are admitted at their n-th occurrence.
GPUPS_FN inline bool is_admitted(std::uint32_t word, std::uint32_t n) {
  return exists(word) || (waits(word) && word - kWaiting >= n);
}

// Returns the first word after an update.
GPUPS_FN inline std::uint32_t after_update(std::uint32_t word) {
  if (!exists(word)) return 2;
  return word < kCountedMax ? word + 1 : word;
}

// Returns the first word after `more` occurrences. REQUIRES: !exists(word).
GPUPS_FN inline std::uint32_t after_occurrences(std::uint32_t word, std::uint32_t more) {
  std::uint64_t const all = std::uint64_t{waits(word) ? word - kWaiting : 0} + more;
  return kWaiting + static_cast<std::uint32_t>(all < kCountedMax ? all : kCountedMax);
}

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
void end_rows(Stream& stream, std::span<EndRows const> lists);
inline void end_rows(Stream& stream, EndRows const& list) { end_rows(stream, {&list, 1}); }

// Makes rows free whose last update or occurrence is more than `age` steps before `now`.
struct ExpireRows {
  Rows<std::uint32_t> lifecycle;
  std::size_t rows;              // numbers 0 .. rows - 1
  std::uint32_t now;             // low half of the number of a step
  std::uint32_t age;             // in steps
  View<std::uint64_t> existing;  // (1): the number of them that existed is added
};
void expire_rows(Stream& stream, ExpireRows const& arguments);

// Counts the entries of given rows of a batch, of many tables in one launch. Reads 12 and writes 8 bytes per row.

// counts[i] = offsets[rows[i] + 1] - offsets[rows[i]] for i < n; the other counts are set to 0.
struct CountEntries {
  View<std::uint32_t const> offsets;
  View<std::uint32_t const> rows;  // (n)
  View<std::int64_t> counts;       // (>= n)
};
void count_entries(Stream& stream, std::span<CountEntries const> parts);
inline void count_entries(Stream& stream, CountEntries const& part) { count_entries(stream, {&part, 1}); }

}  // namespace gpups::kernels
