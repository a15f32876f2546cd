// SPDX-License-Identifier: Apache-2.0
#include "kernels/permute_rows.hpp"

#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, TakeRows const& t) {
  each_row(ex, t.positions.size(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = t.from.row(t.positions[i]);
    float* const to = t.to.row(i);
    lanes.each(t.to.columns(), [=](std::size_t j) { to[j] = from[j]; });
    if (lanes.first() && !t.flags_to.empty()) t.flags_to[i] = t.flags_from[t.positions[i]];
  });
}

template <Space S>
void run(Exec<S> ex, PutRows const& p) {
  each_row(ex, p.positions.size(), [p] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = p.from.row(i);
    float* const to = p.to.row(p.positions[i]);
    std::size_t const dim = p.to.columns();
    lanes.each(p.to.stride(), [=](std::size_t j) { to[j] = j < dim ? from[j] : 0.0F; });
  });
}

GPUPS_KERNEL(take_rows, TakeRows)
GPUPS_KERNEL(put_rows, PutRows)

}  // namespace gpups::kernels
