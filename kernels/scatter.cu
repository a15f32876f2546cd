// SPDX-License-Identifier: Apache-2.0
#include "kernels/scatter.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, Scatter const& s) {
  GPUPS_ASSERT(s.from.rows() >= s.ids.size() && s.from.columns() >= s.dim && s.rows.stride >= s.dim);
  each_row(ex, s.ids.size(), [s] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if (i + kRowsAhead < s.ids.size()) lanes.prefetch(s.rows.row(s.ids[i + kRowsAhead]), s.dim * sizeof(float));
    float const* const from = s.from.row(i);
    float* const to = s.rows.row(s.ids[i]);
    std::size_t const dim = s.dim;
    lanes.each(dim, [=](std::size_t j) { to[j] = from[j]; });
    lanes.each(s.rows.stride - dim, [=](std::size_t j) { to[dim + j] = 0; });
  });
}

GPUPS_KERNEL(scatter, Scatter)

}  // namespace gpups::kernels
