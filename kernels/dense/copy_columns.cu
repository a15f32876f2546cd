// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/copy_columns.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CopyColumns const& c) {
  GPUPS_ASSERT(c.to.rows() >= c.from.rows() && c.to.columns() >= c.from.columns());
  each_row(ex, c.from.rows(), [c] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = c.from.row(i);
    float* const to = c.to.row(i);
    if (c.add) {
      lanes.each(c.from.columns(), [=](std::size_t j) { to[j] += from[j]; });
    } else {
      lanes.each(c.from.columns(), [=](std::size_t j) { to[j] = from[j]; });
    }
  });
}

GPUPS_KERNEL(copy_columns, CopyColumns)

}  // namespace gpups::kernels
