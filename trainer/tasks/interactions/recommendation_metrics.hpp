// SPDX-License-Identifier: Apache-2.0
// The quality of recommendations: recall@k and ndcg@k. For each user, all items that the user has not chosen before are
// ranked by their scores. recall@k is the share of the user's items of the split that are among the first k; ndcg@k
// weights each of them by 1 / log2(1 + its rank), and divides by the sum of the best order. Both are means over users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"

namespace gpups::trainer {

// The metrics for each k, in the order of the arguments.
struct RecommendationMetrics {
  std::vector<double> recall, ndcg;
};

// Returns the rows of some users, by their numbers, on the device.
using UserRows = std::function<Matrix<float>(std::vector<std::uint32_t> const& users)>;

// Evaluates all users who have items in a split; those who chose an item in an earlier split do not get it again.
// items: (all items, dim), on the device. Items with equal scores count as in random order: the metrics are
// expectations. The result is the same for every number of ranks. REQUIRES: the split is not empty. Blocks. Collective.
RecommendationMetrics wait_recommendation_metrics(Stream& stream, Store& store, InteractionSet const& set,
                                                  std::string_view split, MatrixView<float const> items,
                                                  UserRows const& users, std::span<std::int64_t const> ks);

// Returns the bytes that this needs on a rank, without the rows of items.
std::uint64_t recommendation_bytes(InteractionSet const& set, std::size_t dim);

}  // namespace gpups::trainer
