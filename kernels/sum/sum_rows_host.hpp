// SPDX-License-Identifier: Apache-2.0
// Distributes the rows whose gradients are summed over host threads: runs of rows, and pieces of long rows.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sum/sum_row_host.hpp"

namespace gpups::kernels {

// Sums rows with very many entries on the host, in pieces. The pieces of all rows are summed in parallel, so that no
// thread waits for a frequent key.
inline constexpr std::uint32_t kPieceEntries = 2048;

// The rows that have more entries than one piece. sum_pieces() is called first, then add_pieces() for each row.
class HostLongRows {
 public:
  HostLongRows(SumGradients const& s, double per_grid, std::vector<std::uint32_t> rows)
      : s_(s), per_grid_(per_grid), rows_(std::move(rows)), first_piece_{0} {
    for (std::uint32_t const r : rows_) {
      first_piece_.push_back(first_piece_.back() +
                             (s.offsets[r + 1] - s.offsets[r] + kPieceEntries - 1) / kPieceEntries);
    }
    partial_ = Array<Int128>(Device::host(), first_piece_.back() * s.sums.stride());
    good_.resize(first_piece_.back());
  }

  std::size_t rows() const { return rows_.size(); }
  std::uint32_t row(std::size_t i) const { return rows_[i]; }

  void sum_pieces(Arena& arena) {
    arena.blocks(good_.size(), [this](std::size_t p) { sum_piece(p); });
  }

  // Writes the sums of row(i) to `to`. Returns false if a contribution is not valid or a sum does not fit int64; all
  // sums are then undefined.
  bool add_pieces(std::size_t i, std::int64_t* to) const {
    auto const first = good_.begin() + first_piece_[i], last = good_.begin() + first_piece_[i + 1];
    bool fits = std::find(first, last, 0) == last;
    for (std::size_t j = 0, stride = s_.sums.stride(); j < stride; ++j) {
      WideSum sum{0, true};
      for (std::size_t p = first_piece_[i]; p < first_piece_[i + 1]; ++p) sum.units += partial_[p * stride + j];
      to[j] = static_cast<std::int64_t>(sum.units);
      fits = fits && sum.fits();
    }
    return fits;
  }

 private:
  void sum_piece(std::size_t p) {
    std::size_t const i = static_cast<std::size_t>(std::upper_bound(first_piece_.begin(), first_piece_.end(), p) -
                                                   first_piece_.begin() - 1);
    std::uint32_t const from = s_.offsets[rows_[i]] + static_cast<std::uint32_t>(p - first_piece_[i]) * kPieceEntries;
    std::uint32_t const end = std::min(s_.offsets[rows_[i] + 1], from + kPieceEntries);
    RowEntries const entries{s_.order.data() + from, end - from, s_.offsets[rows_[i] + 1] - end};
    std::size_t const stride = s_.sums.stride();
    Array<std::int64_t> const sums(Device::host(), stride);
    bool const narrow = sum_any_row(s_, per_grid_, entries, sums.data());
    good_[p] = 1;
    for (std::size_t j = 0; j < stride; ++j) {
      WideSum sum{narrow || j >= s_.sums.columns() ? sums[j] : 0, true};
      if (!narrow && j < s_.sums.columns()) sum = wide_sum(s_, per_grid_, entries, j);
      partial_[p * stride + j] = sum.units;
      good_[p] = good_[p] != 0 && sum.good;
    }
  }

  SumGradients const& s_;
  double per_grid_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::size_t> first_piece_;  // (rows + 1): the first piece of each row
  Array<Int128> partial_;                 // (pieces, stride)
  std::vector<std::uint8_t> good_;        // (pieces): whether all contributions are valid
};

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
