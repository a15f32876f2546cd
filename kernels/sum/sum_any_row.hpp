// SPDX-License-Identifier: Apache-2.0
// The exact sum of the gradients of some entries on the host, by the fastest method that applies.
#pragma once

#ifndef __CUDACC__

#include "kernels/base/contribution.hpp"
#include "kernels/sum/entries_host.hpp"
#include "kernels/sum/sum_row.hpp"

namespace gpups::kernels {

// Returns the sum of column j in 128 bits, which cannot overflow. The slower method.
inline WideSum wide_sum(SumGradients const& s, double per_grid, RowEntries const& entries, std::size_t j) {
  WideSum sum{0, true};
  for (std::size_t k = 0; k < entries.count; ++k) {
    std::uint32_t const e = entries.order[k];
    sum.add(coefficient(s, e), source_row(s, e)[j], per_grid);
  }
  return sum;
}

// Writes the sums of all columns to `to`, and zeros to the padding. Returns false if a contribution is not valid or a
// sum does not fit int64; all sums are then undefined.
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
