// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_elements.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S, class T>
void run(Exec<S> ex, GatherElements<T> const& g) {
  GPUPS_ASSERT(g.to.size() >= g.positions.size());
  each(ex, g.positions.size(), [g] GPUPS_FN(std::size_t i) { g.to[i] = g.from[g.positions[i]]; });
}

template <Space S>
void run(Exec<S> ex, ScatterElements const& s) {
  GPUPS_ASSERT(s.from.size() >= s.positions.size());
  each(ex, s.positions.size(), [s] GPUPS_FN(std::size_t i) { s.to[s.positions[i]] = s.from[i]; });
}

GPUPS_KERNEL(gather_elements, GatherElements<Key>)
GPUPS_KERNEL(gather_elements, GatherElements<std::uint32_t>)
GPUPS_KERNEL(scatter_elements, ScatterElements)

}  // namespace gpups::kernels
