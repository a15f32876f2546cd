// SPDX-License-Identifier: Apache-2.0
// Finds out whether a list names a row twice. Moves 20 bytes per row.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct RepeatedIds {
  View<std::uint32_t const> ids;  // (n)
  Rows<std::uint64_t> mark;       // stride 1: of each row, and changed
  std::uint32_t epoch;            // of the list; no mark has it in its high half
  View<std::uint32_t> repeated;   // (1), kNoRow before; after it a row that is named twice, if there is any
};
void repeated_ids(Stream& stream, RepeatedIds const& arguments);

}  // namespace gpups::kernels
