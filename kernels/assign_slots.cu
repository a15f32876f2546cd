// SPDX-License-Identifier: Apache-2.0
#include "kernels/assign_slots.hpp"

#include "kernels/assert.hpp"
#include "kernels/compact.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

struct AssignSlotsCounted {
  AssignSlots assign;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, AssignSlotsCounted const& counted) {
  AssignSlots const a = counted.assign;
  GPUPS_ASSERT(a.epoch > 0 && a.slots.size() >= a.ids.size() && a.new_ids.size() >= a.ids.size());
  each(ex, a.ids.size(), [a] GPUPS_FN(std::size_t i) {
    std::uint64_t const mark = *a.mark.row(a.ids[i]);
    a.slots[i] = mark >> 32 == a.epoch ? static_cast<std::uint32_t>(mark) : kNoRow;
  });
  *counted.count = wait_compact(
      ex, a.ids.device(), a.ids.size(), [a] GPUPS_FN(std::size_t i) { return a.slots[i] == kNoRow; },
      [a] GPUPS_FN(std::size_t i, std::uint32_t rank) {
        std::uint32_t const id = a.ids[i];
        std::uint32_t const slot = a.first_new + rank;
        *a.mark.row(id) = std::uint64_t{a.epoch} << 32 | slot;
        a.slots[i] = slot;
        a.new_ids[rank] = id;
      });
}

GPUPS_KERNEL(assign_slots_counted, AssignSlotsCounted)

#ifndef __CUDACC__
std::size_t wait_assign_slots(Stream& stream, AssignSlots const& arguments) {
  std::size_t count = 0;
  assign_slots_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
