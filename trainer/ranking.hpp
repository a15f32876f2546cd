// SPDX-License-Identifier: Apache-2.0
// Sums over ranked answers that do not depend on their order, and the metrics that they give.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpups::trainer {

struct RankingMetrics {
  std::int64_t ranked = 0;  // answers: two for each triple
  double mrr = 0;           // mean of 1 / rank
  double mean_rank = 0;
  std::vector<std::pair<std::int64_t, double>> hits;  // k, and the share of ranks up to k
};

// An answer's rank is 1 + better + equal / 2: the middle of the places that ties allow.
class RankingSums {
 public:
  explicit RankingSums(std::vector<std::int64_t> hits);

  void add(std::uint64_t better, std::uint64_t equal);
  // Integers to be summed over ranks.
  std::span<std::int64_t> values() { return values_; }
  RankingMetrics metrics() const;

 private:
  std::vector<std::int64_t> hits_;
  std::vector<std::int64_t> values_;  // count; 1 / rank in units of 2^-32; twice the ranks; hits
};

}  // namespace gpups::trainer
