// SPDX-License-Identifier: Apache-2.0
// Top-k on the host: a sample gives bounds between which the threshold probably lies, one pass over the vector lists
// the elements above the lower bound, and the list is searched. If the bounds were wrong, exact histograms of the whole
// vector give the threshold instead.
#pragma once

#include <limits>
#include <optional>

#include "kernels/runtime/read_back.hpp"
#include "kernels/sparse/exact_threshold.hpp"
#include "kernels/sparse/sample_threshold.hpp"
#include "kernels/sparse/top_k.hpp"
#include "kernels/sparse/write_selected.hpp"

namespace gpups::kernels {

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
