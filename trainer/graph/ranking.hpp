// SPDX-License-Identifier: Apache-2.0
// Sums over ranked answers that do not depend on their order, and the metrics that they give.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpups::trainer {

struct RankingMetrics {
  std::int64_t ranked = 0;  // answers: two for each triple
  double mrr = 0;           // mean of 1 / rank
  double mean_rank = 0;
  std::vector<std::pair<std::int64_t, double>> hits;  // k, and the share of ranks up to k
};

// {"ranked": 2, "mrr": 0.5, "mean_rank": 2.0, "hits@1": 0.5}
nlohmann::json to_json(RankingMetrics const& metrics);
// "mrr 0.3456  hits@1 0.2501  hits@10 0.5012"
std::string to_text(RankingMetrics const& metrics);

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
