// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/sum_parts.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/contribution.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Sums one parameter, whatever the magnitudes of its parts.
GPUPS_FN inline void sum_parameter(SumParts const& s, double per_grid, std::size_t j) {
  WideSum sum{0, true};
  for (std::size_t i = 0; i < s.parts.rows(); ++i) sum.add(1.0F, s.parts.row(i)[j], per_grid);
  s.sums[j] = static_cast<std::int64_t>(sum.units);
  if (!sum.fits()) atomic_min(s.bad_element.data(), static_cast<std::uint32_t>(j));
}

#ifdef __CUDACC__

template <Space S>
void run(Exec<S> ex, SumParts const& s) {
  GPUPS_ASSERT(s.parts.columns() >= s.sums.size());
  double const per_grid = std::ldexp(1.0, -s.grid_log2);
  each(ex, s.sums.size(), [s, per_grid] GPUPS_FN(std::size_t j) { sum_parameter(s, per_grid, j); });
}

#else

// kTogether parameters are summed at a time, so that their sums stay in the first-level cache. Within them, kAtOnce
// parameters are summed between two prefetches of the next part; hardware prefetch does not cover it, because parts are
// far apart in memory.
inline constexpr std::size_t kTogether = 1024;
inline constexpr std::size_t kAtOnce = 64;

// Adds a part to sums, without the elements that are not in [-limit, limit). Returns the number of these elements.
inline std::size_t add_part(float const* __restrict part, double per_grid, double limit, std::size_t count,
                            std::int64_t* __restrict sums) {
  std::size_t outside = 0;
  for (std::size_t j = 0; j < count; ++j) {
    double const x = std::floor(static_cast<double>(part[j]) * per_grid);
    bool const inside = x >= -limit && x < limit;
    sums[j] += static_cast<std::int64_t>(inside ? x : 0.0);
    outside += inside ? 0 : 1;
  }
  return outside;
}

// Sums up to kTogether parameters from `first` on. Returns the number of elements that are not in [-limit, limit).
inline std::size_t sum_together(SumParts const& s, double per_grid, double limit, std::size_t first,
                                std::size_t count) {
  std::fill_n(s.sums.data() + first, count, 0);
  std::size_t const parts = s.parts.rows();
  std::size_t outside = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    bool const last = i + 1 == parts;
    float const* const next = last ? s.parts.row(0) + first + kTogether : s.parts.row(i + 1) + first;
    std::size_t const ahead = last ? std::min(kTogether, s.sums.size() - first - count) : count;
    for (std::size_t j = 0; j < count; j += kAtOnce) {
      std::size_t const now = std::min(kAtOnce, count - j);
      if (j < ahead) HostLanes{}.prefetch(next + j, now * sizeof(float));
      outside += add_part(s.parts.row(i) + first + j, per_grid, limit, now, s.sums.data() + first + j);
    }
  }
  return outside;
}

template <Space S>
void run(Exec<S> ex, SumParts const& s) {
  std::size_t const n = s.sums.size(), parts = s.parts.rows();
  GPUPS_ASSERT(s.parts.columns() >= n);
  double const per_grid = std::ldexp(1.0, -s.grid_log2);
  // Sums of elements below this cannot leave int64.
  double const limit = 0x1p62 / static_cast<double>(std::max<std::size_t>(parts, 1));
  ex.arena->blocks((n + kTogether - 1) / kTogether, [&](std::size_t block) {
    std::size_t const first = block * kTogether, count = std::min(kTogether, n - first);
    std::size_t const outside = sum_together(s, per_grid, limit, first, count);
    for (std::size_t j = 0; outside > 0 && j < count; ++j) sum_parameter(s, per_grid, first + j);
  });
}

#endif

template <Space S>
void run(Exec<S> ex, MarkBad const& m) {
  each(ex, 1, [m] GPUPS_FN(std::size_t) {
    std::int64_t mark = 0;
    for (std::size_t i = 0; i < m.bad_elements.size(); ++i) mark |= m.bad_elements[i] != kNoRow ? 1 : 0;
    m.mark[0] = mark;
  });
}

GPUPS_KERNEL(sum_parts, SumParts)
GPUPS_KERNEL(mark_bad, MarkBad)

}  // namespace gpups::kernels
