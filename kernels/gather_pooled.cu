// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_pooled.hpp"

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Sums `kWide` columns of a bag in registers.
template <std::size_t kWide, bool kWeighted>
GPUPS_FN inline void sum_columns(GatherPooled const& g, std::uint32_t first, std::uint32_t last, std::size_t column,
                                 float* to, float scale) {
  float sum[kWide] = {};
  for (std::uint32_t e = first; e < last; ++e) {
    float const* const row = g.rows.row(g.positions[e]) + column;
    if constexpr (kWeighted) {
      float const coefficient = g.coefficients[e];
      for (std::size_t k = 0; k < kWide; ++k) sum[k] += coefficient * row[k];
    } else {
      for (std::size_t k = 0; k < kWide; ++k) sum[k] += row[k];
    }
  }
  for (std::size_t k = 0; k < kWide; ++k) to[column + k] = sum[k] * scale;
}

// One bag: columns are few enough for registers at a time, and each is summed in the order of entries.
template <bool kWeighted>
GPUPS_FN inline void sum_bag(NativeLanes lanes, GatherPooled const& g, std::uint32_t first, std::uint32_t last,
                             float* to, float scale) {
  std::size_t const width = g.out.stride();
#ifdef __CUDACC__
  lanes.each(width, [&](std::size_t j) { sum_columns<1, kWeighted>(g, first, last, j, to, scale); });
#else
  (void)lanes;
  std::size_t j = 0;
  for (; j + 64 <= width; j += 64) sum_columns<64, kWeighted>(g, first, last, j, to, scale);
  for (; j + 16 <= width; j += 16) sum_columns<16, kWeighted>(g, first, last, j, to, scale);
  for (; j < width; j += 4) sum_columns<4, kWeighted>(g, first, last, j, to, scale);
#endif
}

GPUPS_FN inline float* row_of_bag(GatherPooled const& g, std::size_t bag) {
  return g.out.row(g.targets.empty() ? bag : g.targets[bag]);
}

template <bool kWeighted, Space S>
void gather_bags(Exec<S> ex, GatherPooled const& g) {
  each_row(ex, g.offsets.size() - 1, [g] GPUPS_FN(std::size_t bag, NativeLanes lanes) {
    std::uint32_t const first = g.offsets[bag], last = g.offsets[bag + 1];
    // The entries of the next bags are the next entries.
    for (std::uint32_t e = last; e < last + (last - first) && e < g.positions.size(); ++e) {
      lanes.prefetch(g.rows.row(g.positions[e]), g.out.stride() * sizeof(float));
    }
    sum_bag<kWeighted>(lanes, g, first, last, row_of_bag(g, bag),
                       g.mean && last > first ? 1.0F / static_cast<float>(last - first) : 1);
  });
}

// Bags of one entry are copies.
template <bool kWeighted, Space S>
void gather_singles(Exec<S> ex, GatherPooled const& g) {
  each_row(ex, g.positions.size(), [g] GPUPS_FN(std::size_t e, NativeLanes lanes) {
    std::size_t const width = g.out.stride(), ahead = e + kRowsAhead;
    if (ahead < g.positions.size()) lanes.prefetch(g.rows.row(g.positions[ahead]), width * sizeof(float));
    float const* const from = g.rows.row(g.positions[e]);
    float* const to = row_of_bag(g, e);
    if constexpr (kWeighted) {
      float const coefficient = g.coefficients[e];
      lanes.each(width, [=](std::size_t j) { to[j] = coefficient * from[j]; });
    } else {
      lanes.each(width, [=](std::size_t j) { to[j] = from[j]; });
    }
  });
}

template <Space S>
void run(Exec<S> ex, GatherPooled const& g) {
  std::size_t const bags = g.offsets.empty() ? g.positions.size() : g.offsets.size() - 1;
  if (bags == 0) return;
  GPUPS_ASSERT(g.out.stride() == g.rows.stride());
  GPUPS_ASSERT(g.targets.empty() ? g.out.rows() >= bags : g.targets.size() >= bags);
  GPUPS_ASSERT(g.coefficients.empty() || g.coefficients.size() >= g.positions.size());
  bool const weighted = !g.coefficients.empty();
  if (g.offsets.empty()) {
    weighted ? gather_singles<true>(ex, g) : gather_singles<false>(ex, g);
  } else {
    weighted ? gather_bags<true>(ex, g) : gather_bags<false>(ex, g);
  }
}

GPUPS_KERNEL(gather_pooled, GatherPooled)

}  // namespace gpups::kernels
