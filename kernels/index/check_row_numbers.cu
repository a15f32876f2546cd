// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/check_row_numbers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
struct CheckedNumbers {
  RowNumbersPart part;
  std::uint32_t* bad_row;
};

template <Space S>
void run(Exec<S> ex, CheckRowNumbers const& c) {
  if (c.parts.empty()) return;
  check_cuda(cudaMemsetAsync(c.bad_rows.data(), 0xFF, c.bad_rows.bytes(), static_cast<cudaStream_t>(ex.stream)),
             "clearing row numbers");
  std::vector<CheckedNumbers> checked;
  for (auto const& part : c.parts) checked.push_back({part, c.bad_rows.data() + checked.size()});
  SegmentList const list(ex, std::move(checked), [](CheckedNumbers const& n) { return n.part.numbers.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CheckedNumbers const& n, std::size_t i) {
    if (n.part.numbers[i] >= n.part.limit) atomic_min(n.bad_row, static_cast<std::uint32_t>(i));
  });
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
