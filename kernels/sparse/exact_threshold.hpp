// SPDX-License-Identifier: Apache-2.0
// The exact threshold of top-k, by histograms over the whole vector: three passes on the host, for any values.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/runtime/launch.hpp"
#include "kernels/sparse/find_above_threshold.hpp"
#include "kernels/sparse/residual_sum.hpp"

namespace gpups::kernels {

// Counts the nonzero magnitudes with (bits >> above) == prefix, by the bits from `shift` to `above`.
inline std::vector<std::size_t> count_bits(HostExec ex, ResidualSum const& x, unsigned shift, unsigned above,
                                           std::uint32_t prefix) {
  constexpr std::size_t kParts = 16;
  std::size_t const bins = std::size_t{1} << (above - shift);
  std::vector<std::vector<std::size_t>> counts(kParts, std::vector<std::size_t>(bins, 0));
  ex.arena->blocks(kParts, [&](std::size_t part) {
    for (std::size_t b = part * x.blocks() / kParts; b < (part + 1) * x.blocks() / kParts; ++b) {
      for (float const value : x.block(b)) {
        std::uint32_t const bits = magnitude_bits(value);
        if (bits >> above == prefix && bits != 0) ++counts[part][bits >> shift & (bins - 1)];
      }
    }
  });
  for (std::size_t part = 1; part < kParts; ++part) {
    for (std::size_t b = 0; b < bins; ++b) counts[0][b] += counts[part][b];
  }
  return counts[0];
}

// The bits of the k-th largest magnitude and k itself. If fewer than k elements are nonzero, k is their number.
// REQUIRES: k > 0.
struct ExactThreshold {
  std::uint32_t bits;
  std::size_t k;
};
inline ExactThreshold exact_threshold(HostExec ex, ResidualSum& x, std::size_t k) {
  constexpr unsigned kShifts[] = {31, 19, 7, 0};
  std::uint32_t prefix = 0;
  std::size_t left = k;
  for (int level = 0; level < 3; ++level) {
    auto const counts = count_bits(ex, x, kShifts[level + 1], kShifts[level], prefix);
    x.set_added();
    if (level == 0) left = k = std::min(k, std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
    if (k == 0) return {kFloatInfinity, 0};
    std::size_t bin = counts.size() - 1;
    while (counts[bin] < left) left -= counts[bin--];
    prefix = prefix << (kShifts[level] - kShifts[level + 1]) | static_cast<std::uint32_t>(bin);
  }
  return {prefix, k};
}

}  // namespace gpups::kernels
