// SPDX-License-Identifier: Apache-2.0
// How the host's threads share the rows whose gradients are summed: blocks of rows, and rows of very many entries piece
// by piece, so that one popular key does not keep the others waiting.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"
#include "kernels/sum_any_row.hpp"

namespace gpups::kernels {

// A row with more entries than are staged at a time: pieces are summed side by side, then added. False: a sum does not
// fit, and all are undefined.
inline bool sum_long_row(HostExec ex, SumGradients const& s, double per_grid, std::uint32_t r, std::int64_t* to) {
  std::uint32_t const first = s.offsets[r], last = s.offsets[r + 1];
  std::size_t const pieces = (last - first + kStagedMax - 1) / kStagedMax, stride = s.sums.stride();
  Array<Int128> const partial(Device::host(), pieces * stride);
  std::vector<std::uint8_t> good(pieces);
  ex.arena->blocks(pieces, [&](std::size_t p) {
    auto const from = first + static_cast<std::uint32_t>(p) * kStagedMax, end = std::min(last, from + kStagedMax);
    StagedEntries staged(s);
    staged.stage(from, end);
    Array<std::int64_t> const sums(Device::host(), stride);
    bool const narrow = sum_any_row(s, per_grid, staged.entries(from, end), sums.data());
    good[p] = 1;
    for (std::size_t j = 0; j < stride; ++j) {
      WideSum sum{narrow || j >= s.sums.columns() ? sums[j] : 0, true};
      if (!narrow && j < s.sums.columns()) sum = wide_sum(s, per_grid, staged.entries(from, end), j);
      partial[p * stride + j] = sum.units;
      good[p] = good[p] != 0 && sum.good;
    }
  });
  bool fits = std::find(good.begin(), good.end(), 0) == good.end();
  for (std::size_t j = 0; j < stride; ++j) {
    WideSum sum{0, true};
    for (std::size_t p = 0; p < pieces; ++p) sum.units += partial[p * stride + j];
    to[j] = static_cast<std::int64_t>(sum.units);
    fits = fits && sum.fits();
  }
  return fits;
}

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

// Calls short_row(r, entries) for rows of few entries, and long_row(r) for the others, whose work is to be shared by
// all threads.
template <class ShortRow, class LongRow>
void each_row_to_sum(HostExec ex, SumGradients const& s, ShortRow short_row, LongRow long_row) {
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
  for (std::uint32_t const r : long_rows) long_row(r);
}

}  // namespace gpups::kernels

#endif
