// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/dot_rows.hpp"

#ifdef __CUDACC__
#include "kernels/score/dot_rows_device.hpp"
#else
#include "kernels/score/dot_rows_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, DotRows const& g) {
  dot_rows_on(ex, g);
}

GPUPS_KERNEL(dot_rows, DotRows)

}  // namespace gpups::kernels
