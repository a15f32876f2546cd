// SPDX-License-Identifier: Apache-2.0
// Finds a row that a list has more than once. Moves 20 bytes per row.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct RepeatedIds {
  View<std::uint32_t const> ids;  // (n)
  Rows<std::uint64_t> mark;       // stride 1: marks of rows; those of the list are overwritten
  std::uint32_t epoch;            // identifies the list; no mark has it in its high half before the call
  View<std::uint32_t> repeated;   // (1), kNoRow before the call; after it the smallest repeated row, if there is one
};
void repeated_ids(Stream& stream, RepeatedIds const& arguments);

}  // namespace gpups::kernels
