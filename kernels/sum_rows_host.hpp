// SPDX-License-Identifier: Apache-2.0
// How the host's threads share the rows whose gradients are summed: blocks of rows, and pieces of long ones.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

#include "kernels/launch.hpp"
#include "kernels/long_rows_host.hpp"

namespace gpups::kernels {

// Blocks of rows by their first entries: distinct keys are listed by parts of their hashes, and what lies beside each
// other in the batch, keys that occur together and their sources, is then in a cache together.
inline std::vector<std::uint32_t> blocks_by_entry(SumGradients const& s) {
  std::size_t const rows = s.offsets.size() - 1;
  std::vector<std::uint32_t> blocks((rows + kBlockRows - 1) / kBlockRows);
  std::iota(blocks.begin(), blocks.end(), 0U);
  auto const first_entry = [&](std::uint32_t block) {
    std::uint32_t const at = s.offsets[block * kBlockRows];
    return at < s.order.size() ? s.order[at] : 0;
  };
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return first_entry(a) < first_entry(b); });
  return blocks;
}

// Calls short_row(r, entries) for rows of few entries, and long_row(r, add), with a function that is like
// HostLongRows::add_pieces for that row, for the others.
template <class ShortRow, class LongRow>
void each_row_to_sum(HostExec ex, SumGradients const& s, double per_grid, ShortRow short_row, LongRow long_row) {
  std::mutex mutex;
  std::vector<std::uint32_t> long_rows;
  std::size_t const rows = s.offsets.size() - 1;
  auto const blocks = blocks_by_entry(s);
  ex.arena->blocks(blocks.size(), [&](std::size_t b) {
    StagedEntries staged(s);
    auto r = static_cast<std::uint32_t>(blocks[b] * kBlockRows);
    auto const end = static_cast<std::uint32_t>(std::min<std::size_t>(rows, r + kBlockRows));
    while (r < end) {
      std::uint32_t const first = r, *const offsets = s.offsets.data();
      while (r < end && offsets[r + 1] - offsets[first] <= kStagedMax) ++r;
      if (r == first) {
        std::lock_guard lock(mutex);
        long_rows.push_back(r++);
        continue;
      }
      staged.stage(offsets[first], offsets[r]);
      for (std::uint32_t k = first; k < r; ++k) short_row(k, staged.entries(offsets[k], offsets[k + 1]));
    }
  });
  HostLongRows sums(s, per_grid, std::move(long_rows));
  sums.sum_pieces(*ex.arena);
  ex.arena->blocks(sums.rows(), [&](std::size_t i) {
    long_row(sums.row(i), [&](std::int64_t* to) { return sums.add_pieces(i, to); });
  });
}

}  // namespace gpups::kernels

#endif
