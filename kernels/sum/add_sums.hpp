// SPDX-License-Identifier: Apache-2.0
// Adds rows of sums to others: merge_sums(), and a step of merge_gradients() on the host.
#pragma once

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::kernels {

inline void check([[maybe_unused]] MergeSums const& m) {
  GPUPS_ASSERT(m.sums.rows() >= m.slots.size() && (m.into.rows() == 0 || m.into.stride() == m.sums.stride()));
  GPUPS_ASSERT(m.more.rows() == 0 || m.more.stride() == m.sums.stride());
  GPUPS_ASSERT(m.positions.empty() || m.positions.size() == m.slots.size());
}

GPUPS_FN inline void add_row_of_sums(MergeSums const& m, std::size_t i, NativeLanes lanes) {
  std::size_t const width = m.sums.stride();
  if (i + kRowsAhead < m.slots.size()) lanes.prefetch(m.target(m.slots[i + kRowsAhead]), width * sizeof(std::int64_t));
  std::int64_t* const to = m.target(m.slots[i]);
  std::int64_t const* const from = m.sums.row(m.positions.empty() ? i : m.positions[i]);
  // A sum has overflowed if its sign differs from the signs of both terms.
  std::uint64_t const overflows = lanes.sum_words(width, [=](std::size_t j) {
    auto const a = static_cast<std::uint64_t>(to[j]), b = static_cast<std::uint64_t>(from[j]), sum = a + b;
    to[j] = static_cast<std::int64_t>(sum);
    return ((sum ^ a) & (sum ^ b)) >> 63;
  });
  if (overflows > 0 && lanes.first()) atomic_min(m.bad_row.data(), m.slots[i]);
}

template <Space S>
void add_sums(Exec<S> ex, MergeSums const& m) {
  check(m);
  each_row(ex, m.slots.size(), [m] GPUPS_FN(std::size_t i, NativeLanes lanes) { add_row_of_sums(m, i, lanes); });
}

}  // namespace gpups::kernels
