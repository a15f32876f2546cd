// SPDX-License-Identifier: Apache-2.0
// The body of wait_assign_slots(), which merge_gradients() also uses on the host.
#pragma once

#include "kernels/base/assert.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sum/assign_slots.hpp"

namespace gpups::kernels {

// Assigns the slots, and returns the number of new ones. On a GPU it waits for the stream.
template <Space S>
std::size_t assign_slots(Exec<S> ex, AssignSlots const& a) {
  GPUPS_ASSERT(a.epoch > 0 && a.slots.size() >= a.ids.size() && a.new_ids.size() >= a.ids.size());
  each(ex, a.ids.size(), [a] GPUPS_FN(std::size_t i) {
    std::uint64_t const mark = *a.mark.row(a.ids[i]);
    a.slots[i] = mark >> 32 == a.epoch ? static_cast<std::uint32_t>(mark) : kNoRow;
  });
  auto const is_new = [a] GPUPS_FN(std::size_t i) { return a.slots[i] == kNoRow; };
  auto const assign = [a] GPUPS_FN(std::size_t i, std::uint32_t rank) {
    std::uint32_t const id = a.ids[i];
    std::uint32_t const slot = a.first_new + rank;
    *a.mark.row(id) = std::uint64_t{a.epoch} << 32 | slot;
    a.slots[i] = slot;
    a.new_ids[rank] = id;
  };
#ifdef __CUDACC__
  return wait_compact(ex, a.ids.device(), a.ids.size(), is_new, assign);
#else
  return compact(ex, a.ids.size(), is_new, assign);
#endif
}

}  // namespace gpups::kernels
