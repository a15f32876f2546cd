// SPDX-License-Identifier: Apache-2.0
#include "trainer/interactions/recommendation_metrics.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/score/dot_rows.hpp"
#include "trainer/exact_sum.hpp"
#include "trainer/graph/target_ranks.hpp"

namespace gpups::trainer {
namespace {

// The sums over users, for one k.
struct SumsAt {
  ExactSum recall, ndcg;
};

// Returns the weight of an item with `before` items before it.
double discount(double before) { return 1 / std::log2(before + 2); }

// Adds one user. before: how many items are before each of the user's items in the ranking.
void add_user(std::span<double const> before, std::span<std::int64_t const> ks, std::span<SumsAt> sums) {
  for (std::size_t i = 0; i < ks.size(); ++i) {
    double hits = 0, gain = 0, best = 0;
    for (std::size_t item = 0; item < before.size(); ++item) {
      if (static_cast<std::int64_t>(item) < ks[i]) best += discount(static_cast<double>(item));
      if (before[item] >= static_cast<double>(ks[i])) continue;
      hits += 1;
      gain += discount(before[item]);
    }
    sums[i].recall.add(hits / static_cast<double>(before.size()));
    sums[i].ndcg.add(std::min(gain / best, 1.0));  // with equal scores, middle ranks may be better than the best order
  }
}

}  // namespace

RecommendationMetrics wait_recommendation_metrics(Stream& stream, Store& store, InteractionSet const& set,
                                                  std::string_view split, MatrixView<float const> items,
                                                  UserRows const& users, std::span<std::int64_t const> ks) {
  Interactions const& wanted = set.split(split);
  std::vector<std::uint32_t> evaluated;
  for (std::uint32_t user = 0; user < set.users.size(); ++user) {
    if (!wanted.of(user).empty()) evaluated.push_back(user);
  }
  std::vector<SumsAt> sums(ks.size());
  std::size_t const block = score_rows_at_once(items.rows());
  auto const ranks = static_cast<std::size_t>(store.ranks());
  for (std::size_t b = number(store.rank()); b * block < evaluated.size(); b += ranks) {
    store.throw_if_failed();  // checked here because a block takes long
    auto const first = evaluated.begin() + static_cast<std::ptrdiff_t>(b * block);
    std::vector<std::uint32_t> const some(
        first, first + static_cast<std::ptrdiff_t>(std::min(block, evaluated.size() - b * block)));
    QueryTargets queries;
    for (std::uint32_t row = 0; row < some.size(); ++row) {
      for (Interaction const& pair : wanted.of(some[row])) {
        queries.targets.push_back(pair.item);
        queries.rows.push_back(row);
      }
      for (Interaction const& pair : set.train.of(some[row])) queries.left_out.push_back(pair.item);
      if (split == "test") {
        for (Interaction const& pair : set.valid.of(some[row])) queries.left_out.push_back(pair.item);
      }
      queries.offsets.push_back(static_cast<std::uint32_t>(queries.left_out.size()));
    }
    Matrix<float> const rows = users(some), scores(stream.device(), some.size(), items.rows());
    kernels::dot_rows(stream, {.left = rows, .right = {items}, .out = scores});
    std::vector<TargetRank> const found = wait_target_ranks(stream, scores, queries);
    std::vector<double> before;
    for (std::size_t q = 0; q < found.size(); ++q) {
      auto const others = static_cast<double>(std::max<std::uint64_t>(found[q].equal, 1) - 1);
      before.push_back(static_cast<double>(found[q].better) + others / 2);
      if (q + 1 < found.size() && queries.rows[q + 1] == queries.rows[q]) continue;
      add_user(before, ks, sums);
      before.clear();
    }
  }

  std::vector<std::int64_t> all;
  for (SumsAt const& at : sums) all.insert(all.end(), {at.recall.whole, at.recall.rest, at.ndcg.whole, at.ndcg.rest});
  store.wait_allreduce(all);
  auto const count = static_cast<double>(evaluated.size());
  RecommendationMetrics metrics;
  for (std::size_t i = 0; i < all.size(); i += 4) {
    metrics.recall.push_back(ExactSum{all[i], all[i + 1]}.total() / count);
    metrics.ndcg.push_back(ExactSum{all[i + 2], all[i + 3]}.total() / count);
  }
  return metrics;
}

std::uint64_t recommendation_bytes(InteractionSet const& set, std::size_t dim) {
  std::size_t const block = std::min(score_rows_at_once(set.items.size()), set.users.size());
  return block * (row_stride(set.items.size()) + row_stride(dim)) * sizeof(float);
}

}  // namespace gpups::trainer
