// SPDX-License-Identifier: Apache-2.0
// recall@k and ndcg@k are those of a ranking by hand.
#include "trainer/tasks/interactions/recommendation_metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/temporary_folder.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer::recommendation_metrics_test {
namespace {

constexpr std::size_t kUsers = 40, kItems = 30;

// Interactions of 40 users and 30 items in three splits.
InteractionSet random_set() {
  InteractionSet set;
  std::vector<Interaction> splits[3];
  for (std::uint32_t u = 0; u < kUsers; ++u) set.users.add("u" + std::to_string(u));
  for (std::uint32_t i = 0; i < kItems; ++i) set.items.add("i" + std::to_string(i));
  for (std::uint32_t u = 0; u < kUsers; ++u) {
    for (std::uint32_t i = 0; i < kItems; ++i) {
      std::uint64_t const draw = random_bits(1, u, i) % 10;
      if (draw < 3) splits[draw].push_back({u, i});
    }
  }
  set.train = {splits[0], kUsers};
  set.valid = {splits[1], kUsers};
  set.test = {splits[2], kUsers};
  set.known_users = kUsers;
  set.known_items = kItems;
  return set;
}

// Evaluates the scores u * kItems + i -> score on some ranks.
RecommendationMetrics evaluate(InteractionSet const& set, std::string_view split, std::vector<float> const& scores,
                               std::vector<std::int64_t> const& ks, int ranks = 1) {
  RecommendationMetrics result;
  run_ranks(Group::threads(ranks), [&](Group group) {
    Rank const rank = group.rank();
    Store store(std::move(group), {.device = Device::host()});
    Stream stream = store.make_stream();
    Matrix<float> items(Device::host(), kItems, kItems);  // the unit matrix: a user's row has the scores
    for (float& x : items.view().flat()) x = 0;
    for (std::size_t i = 0; i < kItems; ++i) items.row(i)[i] = 1;
    RecommendationMetrics const metrics = wait_recommendation_metrics(
        stream, store, set, split, items,
        [&](std::vector<std::uint32_t> const& users) {
          Matrix<float> rows(Device::host(), users.size(), kItems);
          for (float& x : rows.view().flat()) x = 0;
          for (std::size_t u = 0; u < users.size(); ++u) {
            std::copy_n(scores.data() + users[u] * kItems, kItems, rows.row(u).begin());
          }
          return rows;
        },
        ks);
    if (number(rank) == 0) result = metrics;
    store.wait_barrier();
  });
  return result;
}

TEST(RecommendationMetrics, EqualARankingByHand) {
  InteractionSet const set = random_set();
  std::vector<float> scores;
  for (std::uint64_t i = 0; i < kUsers * kItems; ++i) scores.push_back(static_cast<float>(random_bits(2, i) >> 40));
  std::vector<std::int64_t> const ks{1, 5, 20};
  for (char const* split : {"valid", "test"}) {
    RecommendationMetrics const got = evaluate(set, split, scores, ks);
    EXPECT_EQ(evaluate(set, split, scores, ks, 3).ndcg, got.ndcg);
    for (std::size_t n = 0; n < ks.size(); ++n) {
      double recall = 0, ndcg = 0, users = 0;
      for (std::uint32_t u = 0; u < kUsers; ++u) {
        auto const wanted = set.split(split).of(u);
        if (wanted.empty()) continue;
        ++users;
        std::vector<std::uint32_t> order;
        for (std::uint32_t i = 0; i < kItems; ++i) {
          bool const before = set.train.has({u, i}) || (split == std::string("test") && set.valid.has({u, i}));
          if (!before) order.push_back(i);
        }
        std::sort(order.begin(), order.end(),
                  [&](auto a, auto b) { return scores[u * kItems + a] > scores[u * kItems + b]; });
        double hits = 0, gain = 0, best = 0;
        for (std::size_t place = 0; place < order.size() && place < static_cast<std::size_t>(ks[n]); ++place) {
          double const weight = 1 / std::log2(static_cast<double>(place) + 2);
          if (place < wanted.size()) best += weight;
          if (!set.split(split).has({u, order[place]})) continue;
          ++hits;
          gain += weight;
        }
        recall += hits / static_cast<double>(wanted.size());
        ndcg += gain / best;
      }
      EXPECT_NEAR(got.recall[n], recall / users, 1e-6) << split << ks[n];
      EXPECT_NEAR(got.ndcg[n], ndcg / users, 1e-6) << split << ks[n];
    }
  }
}

TEST(RecommendationMetrics, EqualScoresAreInRandomOrderAndNanIsLast) {
  InteractionSet const set = random_set();
  RecommendationMetrics const equal = evaluate(set, "test", std::vector<float>(kUsers * kItems, 1), {3, 30});
  double chance = 0, users = 0;
  for (std::uint32_t u = 0; u < kUsers; ++u) {
    if (set.test.of(u).empty()) continue;
    ++users;
    chance += 3.0 / static_cast<double>(kItems - set.train.of(u).size() - set.valid.of(u).size());
  }
  EXPECT_NEAR(equal.recall[0], chance / users, 1e-6);
  EXPECT_NEAR(equal.recall[1], 1, 1e-6);
  RecommendationMetrics const nan =
      evaluate(set, "test", std::vector<float>(kUsers * kItems, std::numeric_limits<float>::quiet_NaN()), {20});
  EXPECT_EQ(nan.recall[0], 0);
}

}  // namespace
}  // namespace gpups::trainer::recommendation_metrics_test
