// SPDX-License-Identifier: Apache-2.0
// The exact sum of some entries' gradients on the host, in whatever way is fastest.
#pragma once

#ifndef __CUDACC__

#include "kernels/contribution.hpp"
#include "kernels/entries_host.hpp"
#include "kernels/sum_row.hpp"

namespace gpups::kernels {

// The plain way, of column j, which cannot overflow.
inline WideSum wide_sum(SumGradients const& s, double per_grid, RowEntries const& entries, std::size_t j) {
  WideSum sum{0, true};
  for (std::size_t k = 0; k < entries.count; ++k) {
    std::uint32_t const e = entries.order[k];
    sum.add(coefficient(s, e), source_row(s, e)[j], per_grid);
  }
  return sum;
}

// Writes the sums to `to`, padding included. False: one does not fit, and all are undefined.
inline bool sum_any_row(SumGradients const& s, double per_grid, RowEntries const& entries, std::int64_t* to) {
  std::size_t const dim = s.sums.columns(), stride = s.sums.stride();
  for (std::size_t j = dim; j < stride; ++j) to[j] = 0;
#ifdef GPUPS_DOWNWARD
  if (sum_row(s, entries, ToUnits{to})) return true;
#endif
  bool fits = true;
  for (std::size_t j = 0; j < dim; ++j) {
    WideSum const sum = wide_sum(s, per_grid, entries, j);
    to[j] = static_cast<std::int64_t>(sum.units);
    fits = fits && sum.fits();
  }
  return fits;
}

}  // namespace gpups::kernels

#endif
