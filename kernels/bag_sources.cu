// SPDX-License-Identifier: Apache-2.0
#include "kernels/bag_sources.hpp"

#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, BagSources const& b) {
  each_row(ex, b.offsets.size() - 1, [b] GPUPS_FN(std::size_t bag, NativeLanes lanes) {
    std::uint32_t const first = b.offsets[bag];
    lanes.each(b.offsets[bag + 1] - first,
               [=](std::size_t j) { b.sources[first + j] = static_cast<std::uint32_t>(bag); });
  });
}

GPUPS_KERNEL(bag_sources, BagSources)

}  // namespace gpups::kernels
