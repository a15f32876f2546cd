// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/recommendation_metrics.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/score/pair_rows.hpp"
#include "trainer/base/exact_sum.hpp"
#include "trainer/base/long_loop.hpp"
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

// The most items whose scores are computed together: with a few hundred users, the scores stay in the processor's cache
// until they are counted.
constexpr std::size_t kItemsAtOnce = std::size_t{1} << 14;

std::size_t items_at_once(std::size_t items) { return std::min(items, kItemsAtOnce); }
std::size_t users_at_once(std::size_t items) { return score_rows_at_once(items_at_once(items)); }

// Returns the items of a split that the users have, and those that they had before.
QueryTargets queries_of(InteractionSet const& set, std::string_view split, std::span<std::uint32_t const> users) {
  QueryTargets queries;
  for (std::uint32_t row = 0; row < users.size(); ++row) {
    for (Interaction const& pair : set.split(split).of(users[row])) {
      queries.targets.push_back(pair.item);
      queries.rows.push_back(row);
    }
    for (Interaction const& pair : set.train.of(users[row])) queries.left_out.push_back(pair.item);
    if (split == "test") {
      for (Interaction const& pair : set.valid.of(users[row])) queries.left_out.push_back(pair.item);
    }
    queries.offsets.push_back(static_cast<std::uint32_t>(queries.left_out.size()));
  }
  return queries;
}

// Returns the queries for the items first .. first + count - 1, whose numbers there begin at 0. The targets' scores are
// given.
QueryTargets within(QueryTargets const& queries, std::uint32_t first, std::uint32_t count) {
  QueryTargets some{.targets = queries.targets, .rows = queries.rows, .left_out = {}, .offsets = {0}};
  for (std::size_t row = 0; row + 1 < queries.offsets.size(); ++row) {
    for (std::uint32_t i = queries.offsets[row]; i < queries.offsets[row + 1]; ++i) {
      std::uint32_t const item = queries.left_out[i] - first;
      if (item < count) some.left_out.push_back(item);  // smaller ones have wrapped around
    }
    some.offsets.push_back(static_cast<std::uint32_t>(some.left_out.size()));
  }
  return some;
}

// Returns the scores of the targets, which have the bits of scores of all items.
Array<float> target_scores(Stream& stream, MatrixView<float const> users, MatrixView<float const> items,
                           QueryTargets const& queries) {
  std::size_t const count = queries.targets.size();
  Array<float> scores(stream.device(), count);
  auto const targets = to_device(stream, queries.targets);
  for (std::size_t q = 0, end = 0; q < count; q = end) {
    while (end < count && queries.rows[end] == queries.rows[q]) ++end;
    kernels::dot_rows(stream, {.left = users.slice(queries.rows[q], 1),
                               .right = {.rows = items, .index = targets.data() + q},
                               .out = {scores.data() + q, 1, end - q, row_stride(end - q), stream.device()}});
  }
  stream.wait();  // `targets` ends here
  return scores;
}

// Returns the ranks of the targets. One pass over all items.
std::vector<TargetRank> wait_ranks(Stream& stream, MatrixView<float const> users, MatrixView<float const> items,
                                   QueryTargets const& queries) {
  auto const wanted = target_scores(stream, users, items, queries);
  std::size_t const most = items_at_once(items.rows());
  Matrix<float> const scores(stream.device(), users.rows(), most);
  std::vector<TargetRank> ranks(queries.targets.size());
  for (std::size_t first = 0; first < items.rows(); first += most) {
    std::size_t const count = std::min(most, items.rows() - first);
    MatrixView<float> const some{scores.view().data(), users.rows(), count, row_stride(count), stream.device()};
    kernels::dot_rows(stream, {.left = users, .right = {items.slice(first, count)}, .out = some});
    auto const found = wait_target_ranks(
        stream, some, within(queries, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)), wanted);
    for (std::size_t q = 0; q < found.size(); ++q) {
      ranks[q].better += found[q].better;
      ranks[q].equal += found[q].equal;
    }
  }
  return ranks;
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
  UserSums user_sums(ks);
  std::size_t const block = users_at_once(items.rows());
  auto const ranks = static_cast<std::size_t>(store.ranks());
  LongLoop progress("evaluating", static_cast<double>(evaluated.size()), number(store.rank()) != 0);
  for (std::size_t b = number(store.rank()); b * block < evaluated.size(); b += ranks) {
    store.throw_if_failed();  // checked here because a block takes long
    if (progress.stops(static_cast<double>(b * block))) break;
    auto const first = evaluated.begin() + static_cast<std::ptrdiff_t>(b * block);
    std::vector<std::uint32_t> const some(
        first, first + static_cast<std::ptrdiff_t>(std::min(block, evaluated.size() - b * block)));
    QueryTargets const queries = queries_of(set, split, some);
    std::vector<TargetRank> const found = wait_ranks(stream, users(some), items, queries);
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
  std::size_t const items = items_at_once(set.items.size()), block = std::min(users_at_once(items), set.users.size());
  return block * (row_stride(items) + row_stride(dim)) * sizeof(float);
}

}  // namespace gpups::trainer
