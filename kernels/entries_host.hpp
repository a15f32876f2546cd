// SPDX-License-Identifier: Apache-2.0
// The entries of a row whose gradients the host sums, and how they are asked for ahead: an entry's number is read in
// sequence, but its source's number, its coefficient and the source itself lie anywhere.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <cstdint>

#include "kernels/sum_gradients.hpp"

namespace gpups::kernels {

// Some entries in their order; `later` more may be read behind them.
struct RowEntries {
  std::uint32_t const* order;
  std::size_t count, later;

  // The entry that is `ahead` after number k, or the last that there is.
  std::uint32_t after(std::size_t k, std::size_t ahead) const { return order[std::min(k + ahead, count + later - 1)]; }
};

inline float const* source_row(SumGradients const& s, std::uint32_t entry) {
  return s.source_rows.row(s.sources.empty() ? entry : s.sources[entry]);
}
inline float coefficient(SumGradients const& s, std::uint32_t entry) {
  return s.coefficients.empty() ? 1.0F : s.coefficients[entry];
}

// How many entries ahead sources are prefetched: into the first-level cache, and where all sources are larger than
// caches, before that into the second. Their numbers and coefficients are asked for kNumbersAhead entries earlier.
inline constexpr std::size_t kNearEntriesAhead = 8, kFarEntriesAhead = 64, kNumbersAhead = 32;
inline constexpr std::size_t kNearBytes = std::size_t{32} << 20;

// Asks for what tells of an entry. Always inlined: g++ drops calls of a function that only prefetches.
[[gnu::always_inline]] inline void prefetch_entry(SumGradients const& s, std::uint32_t entry) {
  if (!s.sources.empty()) __builtin_prefetch(&s.sources[entry]);
  if (!s.coefficients.empty()) __builtin_prefetch(&s.coefficients[entry]);
}

}  // namespace gpups::kernels

#endif
