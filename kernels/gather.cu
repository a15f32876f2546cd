// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, Gather const& g) {
  GPUPS_ASSERT(g.out.rows() >= g.ids.size() && g.out.stride() == g.rows.stride);
  each_row(ex, g.ids.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const width = g.out.stride();
    if (i + kRowsAhead < g.ids.size()) lanes.prefetch(g.rows.row(g.ids[i + kRowsAhead]), width * sizeof(float));
    float const* const from = g.rows.row(g.ids[i]);
    float* const to = g.out.row(i);
    lanes.each(width, [=](std::size_t j) { to[j] = from[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, GatherFound const& g) {
  GPUPS_ASSERT(g.out.rows() >= g.ids.size() && g.out.stride() == g.rows.stride);
  each_row(ex, g.ids.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const ahead = i + kRowsAhead;
    if (ahead < g.ids.size() && g.ids[ahead] != kNoRow) {
      lanes.prefetch(g.rows.row(g.ids[ahead]), g.out.stride() * sizeof(float));
    }
    if (g.ids[i] == kNoRow) return;
    float const* const from = g.rows.row(g.ids[i]);
    float* const to = g.out.row(i);
    lanes.each(g.out.stride(), [=](std::size_t j) { to[j] = from[j]; });
  });
}

GPUPS_KERNEL(gather, Gather)
GPUPS_KERNEL(gather_found, GatherFound)

}  // namespace gpups::kernels
