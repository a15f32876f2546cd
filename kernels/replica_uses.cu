// SPDX-License-Identifier: Apache-2.0
#include "kernels/replica_uses.hpp"

#include "kernels/assert.hpp"
#include "kernels/compact.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

struct TakeReplicasCounted {
  TakeReplicas take;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, MarkReplicas const& m) {
  each(ex, m.ids.size(), [m] GPUPS_FN(std::size_t i) { *m.uses.row(m.ids[i]) = m.word; });
}

template <Space S>
void run(Exec<S> ex, TakeReplicasCounted const& counted) {
  TakeReplicas const t = counted.take;
  GPUPS_ASSERT(t.taken.size() >= t.ids.size());
  *counted.count = wait_compact(
      ex, t.taken.device(), t.ids.size(), [t] GPUPS_FN(std::size_t i) { return *t.uses.row(t.ids[i]) == t.word; },
      [t] GPUPS_FN(std::size_t i, std::uint32_t rank) {
        t.taken[rank] = t.ids[i];
        *t.uses.row(t.ids[i]) = kOwned;
      });
}

GPUPS_KERNEL(mark_replicas, MarkReplicas)
GPUPS_KERNEL(take_replicas_counted, TakeReplicasCounted)

#ifndef __CUDACC__
std::size_t wait_take_replicas(Stream& stream, TakeReplicas const& arguments) {
  std::size_t count = 0;
  take_replicas_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
