// SPDX-License-Identifier: Apache-2.0
// Distributes the rows whose gradients are summed over host threads: runs of rows, and pieces of long rows.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

#include "kernels/runtime/launch.hpp"
#include "kernels/sum/long_rows_host.hpp"

namespace gpups::kernels {

// Runs of consecutive rows. A thread sums the rows of a run one after another, while the data of the next rows are
// being loaded.
struct RowRuns {
  std::size_t rows, run_rows;
  std::vector<std::uint32_t> order;  // of the runs

  // Sorts runs by their first entries. Distinct keys are listed by ranges of their hashes; in this order, keys that are
  // near each other in the batch, and their sources, are in cache at the same time.
  RowRuns(SumGradients const& s, int threads) : rows(s.offsets.size() - 1) {
    std::size_t const blocks = (rows + kBlockRows - 1) / kBlockRows;
    std::size_t const parts = static_cast<std::size_t>(threads) * kRunsPerThread;
    run_rows = kBlockRows * std::clamp<std::size_t>(blocks / parts, 1, kBlocksMax);
    order.resize((rows + run_rows - 1) / run_rows);
    std::iota(order.begin(), order.end(), 0U);
    auto const first_entry = [&](std::uint32_t run) {
      std::uint32_t const at = s.offsets[run * run_rows];
      return at < s.order.size() ? s.order[at] : 0;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return first_entry(a) < first_entry(b); });
  }

 private:
  static constexpr std::size_t kBlocksMax = 16, kRunsPerThread = 32;
};

// Calls short_row(r, entries) for each row with few entries, and long_row(r, add) for each other row, where add(to) is
// HostLongRows::add_pieces() for the row. Calls ahead(r) kRowsAhead rows before row r.
template <class PrefetchTarget, class ShortRow, class LongRow>
void each_row_to_sum(HostExec ex, SumGradients const& s, double per_grid, PrefetchTarget ahead, ShortRow short_row,
                     LongRow long_row) {
  std::mutex mutex;
  std::vector<std::uint32_t> long_rows;
  RowRuns const runs(s, ex.arena->threads());
  ex.arena->blocks(runs.order.size(), [&](std::size_t b) {
    std::size_t const first = runs.order[b] * runs.run_rows, last = std::min(runs.rows, first + runs.run_rows);
    std::uint32_t const* const offsets = s.offsets.data();
    for (std::size_t r = first; r < std::min(first + kRowsAhead, last); ++r) ahead(r);
    for (std::size_t r = first; r < last; ++r) {
      if (r + kRowsAhead < last) ahead(r + kRowsAhead);
      std::size_t const count = offsets[r + 1] - offsets[r];
      if (count > kPieceEntries) {
        std::lock_guard lock(mutex);
        long_rows.push_back(static_cast<std::uint32_t>(r));
      } else {
        short_row(static_cast<std::uint32_t>(r),
                  RowEntries{s.order.data() + offsets[r], count, offsets[last] - offsets[r + 1]});
      }
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
