// SPDX-License-Identifier: Apache-2.0
// Assigns one slot to each row that a step uses, even if several messages contain the row. Moves 24 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

struct AssignSlots {
  View<std::uint32_t const> ids;  // (k), distinct
  Rows<std::uint64_t> mark;       // stride 1: epoch << 32 | slot of each row; 0 for a new row
  std::uint32_t epoch;            // identifies the step; at least 1
  std::uint32_t first_new;        // number of slots that were assigned in this epoch so far
  View<std::uint32_t> slots;  // (k), output: the slot of each row; a row without a slot in this epoch gets the next one
  View<std::uint32_t> new_ids;  // (>= k), output: the rows that had no slot, in order; new_ids[j] gets first_new + j
};

// Assigns the slots. Returns the number of new ones. Waits for `stream`.
std::size_t wait_assign_slots(Stream& stream, AssignSlots const& arguments);

}  // namespace gpups::kernels
