// SPDX-License-Identifier: Apache-2.0
// Top-k on the host: a sample gives bounds that the threshold very likely lies between, one pass over the vector lists
// what is above the lower one, and the rest is done on that list. Where the bounds were wrong, exact histograms of the
// whole vector give the threshold instead.
#pragma once

#include <limits>
#include <optional>

#include "kernels/wire/bracket_of_sample.hpp"
#include "kernels/wire/threshold_of_all.hpp"
#include "kernels/wire/top_k.hpp"
#include "kernels/wire/write_kept.hpp"

namespace gpups::kernels {

// Vectors up to this length are listed as a whole.
inline constexpr std::size_t kListAll = 65536;

inline TopKept top_kept(std::size_t count, std::uint32_t bits) {
  return {count, count == 0 ? std::numeric_limits<float>::infinity() : std::bit_cast<float>(bits)};
}

// Nothing where the bounds were wrong.
inline std::optional<TopKept> top_k_of_list(HostExec ex, TopK const& t, Summed& x, Bracket const& bracket) {
  HitList list(bracket, x.size());
  bool const fits = list.fill(ex, x);
  if (!fits || (list.size() < t.k && bracket.low > 1)) {
    list.put_back(ex, x);
    return {};
  }
  std::size_t const k = std::min(t.k, list.size());
  if (k == 0) return top_kept(0, 0);
  std::uint32_t const bits = list.kth(ex, k);
  write_kept(ex, list, x, {bits, k, true}, {t.indices, t.kept});
  return top_kept(k, bits);
}

// Any vector, by five passes. REQUIRES: k > 0.
inline TopKept top_k_of_all(HostExec ex, TopK const& t, Summed& x, std::size_t k) {
  auto const [bits, count] = threshold_of_all(ex, x, k);
  write_kept(ex, x, {bits, count, true}, {t.indices, t.kept});
  return top_kept(count, bits);
}

inline TopKept top_k(HostExec ex, TopK const& t) {
  Summed x(t.values, t.residual);
  std::size_t const n = x.size(), k = std::min(t.k, n);
  if (k == 0) {
    x.add(ex);
    return top_kept(0, 0);
  }
  if (n > kListAll && t.guess > 0) {
    Bracket const near{magnitude_bits(t.guess * 0.9F), magnitude_bits(t.guess * 1.1F), std::min(n, 2 * k + kListAll)};
    bool const usable = near.low > 0 && near.low < near.high;
    if (auto const kept = usable ? top_k_of_list(ex, t, x, near) : std::nullopt) return *kept;
  }
  Bracket const bracket = n > kListAll ? bracket_of_sample(ex, x, k) : Bracket{1, kBitsEnd, n};
  if (auto const kept = top_k_of_list(ex, t, x, bracket)) return *kept;
  return top_k_of_all(ex, t, x, k);
}

}  // namespace gpups::kernels
