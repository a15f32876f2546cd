// SPDX-License-Identifier: Apache-2.0
// Gives each row of a step one slot, however many messages name it. Moves 24 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct AssignSlots {
  View<std::uint32_t const> ids;  // (k), distinct
  Rows<std::uint64_t> mark;       // stride 1: epoch << 32 | slot; 0 in a new row
  std::uint32_t epoch;            // of the step, from 1
  std::uint32_t first_new;        // slots handed out in this epoch so far
  View<std::uint32_t> slots;      // (k): the row's slot of this epoch; a row without one gets the next
  View<std::uint32_t> new_ids;    // (>= k): the ids that had none, in order; slot first_new + j is new_ids[j]'s
};

// Returns how many were new. Waits for `stream`.
std::size_t wait_assign_slots(Stream& stream, AssignSlots const& arguments);

}  // namespace gpups::kernels
