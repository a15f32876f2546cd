// SPDX-License-Identifier: Apache-2.0
// The exact sum of one row's gradients, in whatever way is fastest.
#pragma once

#include "kernels/atomic.hpp"
#include "kernels/contribution.hpp"
#include "kernels/launch.hpp"
#include "kernels/sum_gradients.hpp"
#ifndef __CUDACC__
#include "kernels/sum_row.hpp"
#endif

namespace gpups::kernels {

GPUPS_FN inline float const* source_row(SumGradients const& s, std::uint32_t entry) {
  return s.source_rows.row(s.sources.empty() ? entry : s.sources[entry]);
}
GPUPS_FN inline float coefficient(SumGradients const& s, std::uint32_t entry) {
  return s.coefficients.empty() ? 1.0F : s.coefficients[entry];
}

// The plain body: column by column, with sums that cannot overflow.
GPUPS_FN inline void sum_row_wide(NativeLanes lanes, SumGradients const& s, double per_grid, std::uint32_t r,
                                  std::int64_t* to) {
  std::size_t const dim = s.sums.columns();
  lanes.each(s.sums.stride(), [&](std::size_t j) {
    WideSum sum{0, true};
    for (std::uint32_t k = s.offsets[r]; j < dim && k < s.offsets[r + 1]; ++k) {
      std::uint32_t const e = s.order[k];
      sum.add(coefficient(s, e), source_row(s, e)[j], per_grid);
    }
    to[j] = static_cast<std::int64_t>(sum.units);
    if (!sum.fits()) atomic_min(s.fault.data(), r);
  });
}

#ifndef __CUDACC__
// Writes the sums of row r to `to`, padding included.
inline void sum_any_row(SumGradients const& s, double per_grid, std::uint32_t r, std::int64_t* to) {
#ifdef GPUPS_DOWNWARD
  std::uint32_t const* const order = s.order.data();
  if (sum_row(s, {order + s.offsets[r], order + s.offsets[r + 1], s.order.end()}, to)) return;
#endif
  sum_row_wide(HostLanes{}, s, per_grid, r, to);
}
#endif

}  // namespace gpups::kernels
