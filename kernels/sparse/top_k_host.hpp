// SPDX-License-Identifier: Apache-2.0
// Top-k on the host: a sample gives bounds between which the threshold probably lies, one pass over the vector lists
// the elements above the lower bound, and the list is searched. If the bounds were wrong, exact histograms of the whole
// vector give the threshold instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/base/philox.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"
#include "kernels/sparse/candidate_list.hpp"
#include "kernels/sparse/residual_sum.hpp"
#include "kernels/sparse/top_k.hpp"

namespace gpups::kernels {

// The exact threshold of top-k, by histograms over the whole vector: three passes on the host, for any values.

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

// An estimate of the threshold of top-k, with bounds, from a sample of the elements. On the host.

// Returns bounds from a sample of 4096 cache lines of 16 floats, one at a random position of each of 4096 equal parts
// of the vector. REQUIRES: 65,536 elements or more.
inline ThresholdRange sample_threshold(HostExec ex, ResidualSum const& x, std::size_t k) {
  constexpr std::size_t kLines = 4096, kLine = 16, kSample = kLines * kLine;
  constexpr unsigned kShift = 16;
  // Arrays reuse their pages in later calls, unlike vectors.
  Array<std::uint32_t> const sample(Device::host(), kSample), bins(Device::host(), kBitsEnd >> kShift);
  std::memset(bins.data(), 0, bins.bytes());
  std::size_t const n = x.size(), part = n / kLines;
  constexpr std::size_t kTogether = 256;  // lines that are prefetched together
  ex.arena->blocks(kLines / kTogether, [&](std::size_t block) {
    std::size_t first[kTogether];
    for (std::size_t l = 0; l < kTogether; ++l) {
      std::size_t const line = block * kTogether + l;
      auto const uniform = philox(philox_key(n), {{static_cast<std::uint32_t>(line), 0, 0, 0}}).word[0];
      first[l] = line * part + std::uint64_t{uniform} * (part - kLine + 1) / (std::uint64_t{1} << 32);
      x.prefetch(first[l], kLine);
    }
    for (std::size_t l = 0; l < kTogether; ++l) {
      std::uint32_t* const to = sample.data() + (block * kTogether + l) * kLine;
      for (std::size_t j = 0; j < kLine; ++j) to[j] = magnitude_bits(x.at(first[l] + j));
    }
  });
  for (std::uint32_t const bits : sample.view()) ++bins[bits >> kShift];
  // Returns the bin of the element with this rank, counted from the largest.
  auto const bin_of = [&](double rank) {
    double seen = 0;
    std::size_t bin = bins.size();
    while (bin > 0 && seen < rank) seen += bins[--bin];
    return static_cast<std::uint32_t>(bin);
  };
  double const rank = static_cast<double>(k) * kSample / static_cast<double>(n);
  // A margin for the difference between samples. Lines are drawn at random, and elements of a line may be similar.
  std::uint32_t const middle = bin_of(rank) << kShift;
  double squares = 0;
  for (std::size_t l = 0; l < kLines; ++l) {
    int large = 0;
    for (std::size_t j = 0; j < kLine; ++j) large += sample[l * kLine + j] >= middle ? 1 : 0;
    squares += large * large;
  }
  double const margin = 3.5 * std::sqrt(squares) + 8;
  std::uint32_t const low = bin_of(rank + margin) << kShift;
  std::uint32_t const high = rank > margin ? (bin_of(rank - margin) + 1) << kShift : kBitsEnd;
  double const listed = (rank + 2 * margin) / kSample * static_cast<double>(n) * 1.2 + 65536;
  return {std::max(low, 1U), high, std::min(n, static_cast<std::size_t>(listed))};
}

// All elements of vectors up to this length are listed.
inline constexpr std::size_t kListAll = 65536;

inline TopKResult top_k_result(std::size_t count, std::uint32_t bits) {
  return {count, count == 0 ? std::numeric_limits<float>::infinity() : std::bit_cast<float>(bits)};
}

// Returns nothing if the bounds were wrong.
inline std::optional<TopKResult> top_k_of_list(HostExec ex, TopK const& t, ResidualSum& x,
                                               ThresholdRange const& range) {
  CandidateList list(range, x.size());
  bool const fits = list.fill(ex, x);
  if (!fits || (list.size() < t.k && range.low > 1)) {
    list.put_back(ex, x);
    return {};
  }
  std::size_t const k = std::min(t.k, list.size());
  if (k == 0) return top_k_result(0, 0);
  std::uint32_t const bits = list.kth(ex, k);
  write_selected(ex, list, x, {bits, k}, {t.indices, t.kept});
  return top_k_result(k, bits);
}

// For any vector, in five passes. REQUIRES: k > 0.
inline TopKResult top_k_of_all(HostExec ex, TopK const& t, ResidualSum& x, std::size_t k) {
  auto const [bits, count] = exact_threshold(ex, x, k);
  write_selected(ex, x, {bits, count}, {t.indices, t.kept});
  return top_k_result(count, bits);
}

inline TopKResult top_k(HostExec ex, TopK const& t) {
  wait_for(ex, "waiting for a count");
  ResidualSum x(t.values, t.residual);
  std::size_t const n = x.size(), k = std::min(t.k, n);
  if (k == 0) {
    x.add(ex);
    return top_k_result(0, 0);
  }
  if (n > kListAll && t.guess > 0) {
    ThresholdRange const near{magnitude_bits(t.guess * 0.9F), magnitude_bits(t.guess * 1.1F),
                              std::min(n, 2 * k + kListAll)};
    bool const usable = near.low > 0 && near.low < near.high;
    if (auto const kept = usable ? top_k_of_list(ex, t, x, near) : std::nullopt) return *kept;
  }
  ThresholdRange const range = n > kListAll ? sample_threshold(ex, x, k) : ThresholdRange{1, kBitsEnd, n};
  if (auto const kept = top_k_of_list(ex, t, x, range)) return *kept;
  return top_k_of_all(ex, t, x, k);
}

}  // namespace gpups::kernels
