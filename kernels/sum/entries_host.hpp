// SPDX-License-Identifier: Apache-2.0
// The entries of a row whose gradients the host sums, and their prefetches. The numbers of entries are read in
// sequence, but the source index, the coefficient and the source of an entry are at scattered addresses.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <cstdint>

#include "kernels/sum/sum_gradients.hpp"

namespace gpups::kernels {

// Entries order[0] .. order[count - 1]. The next `later` entries may be read for prefetches.
struct RowEntries {
  std::uint32_t const* order;
  std::size_t count, later;

  // Returns the entry `ahead` places after number k, or the last one.
  std::uint32_t after(std::size_t k, std::size_t ahead) const { return order[std::min(k + ahead, count + later - 1)]; }
};

inline float const* source_row(SumGradients const& s, std::uint32_t entry) {
  return s.source_rows.row(s.sources.empty() ? entry : s.sources[entry]);
}
inline float coefficient(SumGradients const& s, std::uint32_t entry) {
  return s.coefficients.empty() ? 1.0F : s.coefficients[entry];
}

// The distances, in entries, from a prefetch to its use. Sources are prefetched kNearEntriesAhead entries ahead into
// the first-level cache and, if all sources together have more than kNearBytes, before that kFarEntriesAhead entries
// ahead into the second-level cache. Source indices and coefficients are prefetched kNumbersAhead entries earlier.
inline constexpr std::size_t kNearEntriesAhead = 8, kFarEntriesAhead = 64, kNumbersAhead = 32;
inline constexpr std::size_t kNearBytes = std::size_t{32} << 20;

// Prefetches the source index and the coefficient of an entry. Always inlined, because g++ drops calls of a function
// that only prefetches.
[[gnu::always_inline]] inline void prefetch_entry(SumGradients const& s, std::uint32_t entry) {
  if (!s.sources.empty()) __builtin_prefetch(&s.sources[entry]);
  if (!s.coefficients.empty()) __builtin_prefetch(&s.coefficients[entry]);
}

}  // namespace gpups::kernels

#endif
