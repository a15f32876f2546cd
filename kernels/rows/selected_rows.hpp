// SPDX-License-Identifier: Apache-2.0
// Selections of rows: by a byte for each row, by a bit for each row, or by the status of rows. Lists of row numbers are
// made from them, and bitmaps from such lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// rows = the i with a flag other than 0, ascending, and taken = from[i] for these i. Returns their number. Blocks until
// `stream` is done.
struct ListFlagged {
  View<std::uint8_t const> flags;  // (n)
  View<std::uint32_t> rows;        // (n)
  View<std::uint32_t const> from;  // (n)
  View<std::uint32_t> taken;       // (n)
};
std::size_t wait_list_flagged(Stream& stream, ListFlagged const& arguments);

// taken = from[i], or i without `from`, for the i < n whose bit i % 32 of bitmap[i / 32] is set, in order;
// indices_to_bitmap() makes such bitmaps. Returns their number. Blocks until `stream` is done.
struct ListMarked {
  View<std::uint32_t const> bitmap;  // ((n + 31) / 32)
  std::size_t n;
  View<std::uint32_t const> from;  // (n), or empty
  View<std::uint32_t> taken;       // (n)
  bool marked = true;              // false: lists those whose bit is not set
};
std::size_t wait_list_marked(Stream& stream, ListMarked const& arguments);
// The same for many lists at once, without a wait. counts: (lists), their numbers.
void list_marked(Stream& stream, std::span<ListMarked const> lists, View<std::uint32_t> counts);

// Sets bit i % 32 of bitmap[i / 32] for each i of the indices, and clears all others. A bitmap is smaller than a list
// if more than one element in 32 is selected.
struct IndicesToBitmap {
  View<std::uint32_t const> indices;  // (kept), distinct, ascending
  View<std::uint32_t> bitmap;         // ((n + 31) / 32), where n is larger than all indices
};
void indices_to_bitmap(Stream& stream, IndicesToBitmap const& arguments);

// Returns the number of words of a bitmap of n bits.
constexpr std::size_t bitmap_words(std::size_t n) { return (n + 31) / 32; }

// The status of a row: it exists, waits for admission, or is free or only reserved (see row_lifecycle.hpp).
enum class RowStatus { kExist, kWait, kFree };

// Reads 8 bytes per row, writes 4 bytes per listed row.
struct SelectRows {
  Rows<std::uint32_t const> lifecycle;  // stride kLifecycleWords
  std::uint32_t first, last;            // the rows that are searched: first .. last - 1
  View<std::uint32_t> ids;              // (>= last - first), output: the rows of this kind, ascending
  RowStatus kind;
};

// Lists the rows. Returns how many there are. Waits for `stream`.
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments);

}  // namespace gpups::kernels
