// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/dot_rows.hpp"

#ifdef __CUDACC__
#include "kernels/score/pair_rows_device.hpp"
#else
#include "kernels/score/pair_rows_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, DotRows const& g) {
  pair_rows(ex, DotPair{}, g.left, g.right, g.out);
}

GPUPS_KERNEL(dot_rows, DotRows)

}  // namespace gpups::kernels
