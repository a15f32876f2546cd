// SPDX-License-Identifier: Apache-2.0
// Finds a row that a list has more than once, in many lists at once. Moves 20 bytes per row.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels
