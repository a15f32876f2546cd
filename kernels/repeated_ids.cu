// SPDX-License-Identifier: Apache-2.0
#include "kernels/repeated_ids.hpp"

#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, RepeatedIds const& r) {
  each(ex, r.ids.size(), [r] GPUPS_FN(std::size_t i) {
    std::uint64_t const before = atomic_exchange(r.mark.row(r.ids[i]), std::uint64_t{r.epoch} << 32);
    if (before >> 32 == r.epoch) atomic_min(&r.repeated[0], r.ids[i]);
  });
}

GPUPS_KERNEL(repeated_ids, RepeatedIds)

}  // namespace gpups::kernels
