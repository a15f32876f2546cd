// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/recommendation_metrics.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/score/pair_rows.hpp"
#include "trainer/base/exact_sum.hpp"
#include "trainer/tasks/common/target_ranks.hpp"

namespace gpups::trainer {
namespace {

// The sums over users, for one k.
struct SumsAt {
  ExactSum recall, ndcg;
};

// Adds users to sums for some k.
class UserSums {
 public:
  explicit UserSums(std::span<std::int64_t const> ks) : ks_(ks), sums_(ks.size()) {}

  // Adds the expectation of a user's metrics if items with equal scores are in random order. ranks: of the user's
  // items.
  void add(std::span<TargetRank const> ranks) {
    for (std::size_t i = 0; i < ks_.size(); ++i) {
      auto const k = static_cast<std::uint64_t>(ks_[i]);
      double hits = 0, gain = 0;
      for (auto const& [better, equal] : ranks) {
        if (better >= k || equal == 0) continue;
        std::uint64_t const last = std::min(better + equal, k);
        hits += static_cast<double>(last - better) / static_cast<double>(equal);
        gain += (discounts(last) - discounts(better)) / static_cast<double>(equal);
      }
      sums_[i].recall.add(hits / static_cast<double>(ranks.size()));
      sums_[i].ndcg.add(gain / discounts(std::min<std::uint64_t>(ranks.size(), k)));
    }
  }
  std::span<SumsAt const> sums() const { return sums_; }

 private:
  // Returns the sum of 1 / log2(1 + rank) for the first `ranks` ranks.
  double discounts(std::uint64_t ranks) {
    while (discounts_.size() <= ranks) {
      discounts_.push_back(discounts_.back() + 1 / std::log2(static_cast<double>(discounts_.size()) + 1));
    }
    return discounts_[ranks];
  }

  std::span<std::int64_t const> ks_;
  std::vector<SumsAt> sums_;
  std::vector<double> discounts_{0};
};

}  // namespace

RecommendationMetrics wait_recommendation_metrics(Stream& stream, Store& store, InteractionSet const& set,
                                                  std::string_view split, MatrixView<float const> items,
                                                  UserRows const& users, std::span<std::int64_t const> ks) {
  Interactions const& wanted = set.split(split);
  std::vector<std::uint32_t> evaluated;
  for (std::uint32_t user = 0; user < set.users.size(); ++user) {
    if (!wanted.of(user).empty()) evaluated.push_back(user);
  }
  UserSums user_sums(ks);
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
    for (std::size_t q = 0, end = 0; q < found.size(); q = end) {
      while (end < found.size() && queries.rows[end] == queries.rows[q]) ++end;
      user_sums.add(std::span(found).subspan(q, end - q));
    }
  }

  std::vector<std::int64_t> all;
  for (SumsAt const& at : user_sums.sums())
    all.insert(all.end(), {at.recall.whole, at.recall.rest, at.ndcg.whole, at.ndcg.rest});
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
