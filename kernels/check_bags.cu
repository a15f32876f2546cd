// SPDX-License-Identifier: Apache-2.0
#include "kernels/check_bags.hpp"

#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CheckBags const& c) {
  each(ex, c.offsets.size(), [c] GPUPS_FN(std::size_t i) {
    std::uint32_t const offset = c.offsets[i];
    bool const rises = i == 0 ? offset == 0 : c.offsets[i - 1] <= offset;
    bool const ends = i + 1 < c.offsets.size() || offset == c.entries;
    if (!rises || !ends) atomic_min(c.fault, static_cast<std::uint32_t>(i));
  });
}

GPUPS_KERNEL(check_bags, CheckBags)

}  // namespace gpups::kernels
