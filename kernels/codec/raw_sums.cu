// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/raw_sums.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, ExtractSums const& t) {
  std::size_t const dim = t.rows.columns();
  GPUPS_ASSERT(t.words.size() >= t.rows.rows() * dim);
  each_row(ex, t.rows.rows(), [t, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t* const from = t.rows.row(i);
    std::int64_t* const to = t.words.data() + i * dim;
    lanes.each(dim, [=](std::size_t j) {
      to[j] = from[j];
      from[j] = 0;
    });
  });
}

template <Space S>
void run(Exec<S> ex, AddRawSums const& a) {
  std::size_t const dim = a.into.columns(), n = a.words.size() / dim;
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= n : a.slots.size() >= n);
  each_row(ex, n, [a, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = a.words.data() + i * dim;
    std::int64_t* const to = a.into.row(a.slots.empty() ? i : a.slots[i]);
    lanes.each(dim, [=](std::size_t j) {
      auto const sum = static_cast<std::uint64_t>(to[j]) + static_cast<std::uint64_t>(from[j]);
      to[j] = static_cast<std::int64_t>(sum);
    });
  });
}

GPUPS_KERNEL(extract_sums, ExtractSums)
GPUPS_KERNEL(add_raw_sums, AddRawSums)

}  // namespace gpups::kernels
