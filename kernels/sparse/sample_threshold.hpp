// SPDX-License-Identifier: Apache-2.0
// An estimate of the threshold of top-k, with bounds, from a sample of the elements. On the host.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/base/philox.hpp"
#include "kernels/sparse/candidate_list.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels
