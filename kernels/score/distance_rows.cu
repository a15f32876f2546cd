// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/distance_rows.hpp"

#include "kernels/base/assert.hpp"
#ifdef __CUDACC__
#include "kernels/score/pair_rows_device.hpp"
#else
#include "kernels/score/pair_rows_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, DistanceRows const& g) {
  GPUPS_ASSERT(is_distance(g.algebra));
  with_distance(g.algebra,
                [&](auto score) { pair_rows(ex, DistancePair<decltype(score)>{g.margin}, g.left, g.right, g.out); });
}

GPUPS_KERNEL(distance_rows, DistanceRows)

}  // namespace gpups::kernels
