// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/sum_row_host.hpp"

namespace gpups::kernels {

bool sum_any_row(SumGradients const& s, double per_grid, RowEntries const& entries, std::int64_t* to) {
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
