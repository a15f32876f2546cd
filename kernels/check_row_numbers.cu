// SPDX-License-Identifier: Apache-2.0
#include "kernels/check_row_numbers.hpp"

#include <algorithm>

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
template <Space S>
void run(Exec<S> ex, CheckRowNumbers const& c) {
  each(ex, c.parts.size(), [bad_rows = c.bad_rows] GPUPS_FN(std::size_t p) { bad_rows[p] = kNoRow; });
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    RowNumbersPart const part = c.parts[p];
    std::uint32_t* const bad_row = c.bad_rows.data() + p;
    each(ex, part.numbers.size(), [=] GPUPS_FN(std::size_t i) {
      if (part.numbers[i] >= part.limit) atomic_min(bad_row, static_cast<std::uint32_t>(i));
    });
  }
}
#else
// Finds the largest number of each block without branches. Only blocks whose largest number is too large are searched
// number by number.
template <Space S>
void run(Exec<S> ex, CheckRowNumbers const& c) {
  GPUPS_ASSERT(c.bad_rows.size() == c.parts.size());
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    auto const& [numbers, limit] = c.parts[p];
    std::uint32_t const* const all = numbers.data();
    std::uint32_t* const bad_row = c.bad_rows.data() + p;
    *bad_row = kNoRow;
    ex.arena->blocks(
        (numbers.size() + kBlockElements - 1) / kBlockElements, [&, n = numbers.size()](std::size_t block) {
          std::size_t const first = block * kBlockElements, last = std::min(first + kBlockElements, n);
          std::uint32_t most = 0;
          for (std::size_t i = first; i < last; ++i) most = std::max(most, all[i]);
          if (first == last || most < limit) return;
          auto const at = std::find_if(all + first, all + last, [&](std::uint32_t number) { return number >= limit; });
          atomic_min(bad_row, static_cast<std::uint32_t>(at - all));
        });
  }
}
#endif

GPUPS_KERNEL(check_row_numbers, CheckRowNumbers)

}  // namespace gpups::kernels
