// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_pooled.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Sums `kWide` columns of a bag in registers.
template <std::size_t kWide>
GPUPS_FN inline void sum_columns(GatherPooled const& g, std::uint32_t first, std::uint32_t last, std::size_t column,
                                 float* to, float scale) {
  float sum[kWide] = {};
  for (std::uint32_t e = first; e < last; ++e) {
    float const* const row = g.rows.row(g.positions[e]) + column;
    for (std::size_t k = 0; k < kWide; ++k) sum[k] += row[k];
  }
  for (std::size_t k = 0; k < kWide; ++k) to[column + k] = sum[k] * scale;
}

// One bag: columns are few enough for registers at a time, and each is summed in the order of entries.
GPUPS_FN inline void sum_bag(NativeLanes lanes, GatherPooled const& g, std::uint32_t first, std::uint32_t last,
                             float* to, float scale) {
  std::size_t const width = g.out.stride();
#ifdef __CUDACC__
  lanes.each(width, [&](std::size_t j) { sum_columns<1>(g, first, last, j, to, scale); });
#else
  (void)lanes;
  std::size_t j = 0;
  for (; j + 64 <= width; j += 64) sum_columns<64>(g, first, last, j, to, scale);
  for (; j + 16 <= width; j += 16) sum_columns<16>(g, first, last, j, to, scale);
  for (; j < width; j += 4) sum_columns<4>(g, first, last, j, to, scale);
#endif
}

template <Space S>
void run(Exec<S> ex, GatherPooled const& g) {
  if (g.offsets.size() < 2) return;
  GPUPS_ASSERT(g.out.rows() >= g.offsets.size() - 1 && g.out.stride() == g.rows.stride());
  each_row(ex, g.offsets.size() - 1, [g] GPUPS_FN(std::size_t bag, NativeLanes lanes) {
    std::uint32_t const first = g.offsets[bag], last = g.offsets[bag + 1];
    // The entries of the next bags are the next entries.
    for (std::uint32_t e = last; e < last + (last - first) && e < g.positions.size(); ++e) {
      lanes.prefetch(g.rows.row(g.positions[e]), g.out.stride() * sizeof(float));
    }
    sum_bag(lanes, g, first, last, g.out.row(bag),
            g.mean && last > first ? 1.0F / static_cast<float>(last - first) : 1);
  });
}

GPUPS_KERNEL(gather_pooled, GatherPooled)

}  // namespace gpups::kernels
