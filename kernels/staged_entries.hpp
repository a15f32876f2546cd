// SPDX-License-Identifier: Apache-2.0
// A run of a batch's entries, put side by side in the first cache: sources and coefficients lie in the order of
// entries, and looking them up one by one would wait behind the rows that are on their way.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <cstdint>

#include "kernels/assert.hpp"
#include "kernels/sum_gradients.hpp"

namespace gpups::kernels {

// A row's entries; `later` more may be read behind them.
struct Entries {
  std::uint32_t const* sources;
  float const* coefficients;
  std::size_t count, later;
};

// Entries whose sources are prefetched; where all sources are larger than caches are, into the second cache first.
inline constexpr std::size_t kEntriesAhead = 8, kNearEntriesAhead = 3, kFarEntriesAhead = 24;
inline constexpr std::size_t kNearBytes = std::size_t{32} << 20;
inline constexpr std::uint32_t kStagedMax = 2048;  // of a run

class StagedEntries {
 public:
  explicit StagedEntries(SumGradients const& s) : s_(s) {}

  // Stages what the order has at [first, last).
  void stage(std::uint32_t first, std::uint32_t last) {
    GPUPS_ASSERT(last - first <= kStagedMax);
    first_ = first;
    last_ = last;
    std::size_t const n = last - first;
    std::uint32_t const* const order = s_.order.data() + first;
    if (s_.sources.empty()) {
      std::copy_n(order, n, sources_);
    } else {
      for (std::size_t k = 0; k < n; ++k) sources_[k] = s_.sources[order[k]];
    }
    for (std::size_t k = 0; k < n; ++k) coefficients_[k] = s_.coefficients.empty() ? 1.0F : s_.coefficients[order[k]];
    for (std::size_t k = 0; k < std::min(n, kEntriesAhead); ++k) {
      float const* const row = s_.source_rows.row(sources_[k]);
      for (std::size_t j = 0; j < s_.sums.columns(); j += 16) __builtin_prefetch(row + j);
    }
  }
  // REQUIRES: first <= last, both within what was staged.
  Entries entries(std::uint32_t first, std::uint32_t last) const {
    return {sources_ + (first - first_), coefficients_ + (first - first_), last - first, last_ - last};
  }

 private:
  SumGradients const& s_;
  std::uint32_t first_ = 0, last_ = 0;
  alignas(64) std::uint32_t sources_[kStagedMax];
  alignas(64) float coefficients_[kStagedMax];
};

}  // namespace gpups::kernels

#endif
