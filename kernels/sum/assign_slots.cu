// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/assign_slots.hpp"

#include "kernels/runtime/read_back.hpp"
#include "kernels/sum/assign_slots_body.hpp"

namespace gpups::kernels {

struct AssignSlotsCounted {
  AssignSlots assign;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, AssignSlotsCounted const& counted) {
  *counted.count = assign_slots(ex, counted.assign);
#ifndef __CUDACC__
  wait_for(ex, "waiting for a count");
#endif
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
