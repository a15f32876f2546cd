// SPDX-License-Identifier: Apache-2.0
// The ranking filter, ranks with ties, sums of ranks over parts, and nearest neighbours.
#include "trainer/tasks/graph/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/expect_error.hpp"
#include "trainer/tasks/common/nearest.hpp"

namespace gpups::trainer::ranking_test {
namespace {

TEST(RankingFilter, ContainsAnswersOfAllSplits) {
  std::vector<Triple> const train{{0, 0, 5}, {0, 0, 3}, {0, 1, 4}, {2, 0, 5}}, test{{0, 0, 3}, {0, 0, 1}};
  RankingFilter const objects({train, test}, true), subjects({train, test}, false);
  auto const list = [](std::span<std::uint32_t const> s) { return std::vector<std::uint32_t>(s.begin(), s.end()); };
  EXPECT_EQ(list(objects.of(0, 0)), (std::vector<std::uint32_t>{1, 3, 5}));
  EXPECT_EQ(list(objects.of(0, 1)), (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(list(subjects.of(5, 0)), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(objects.of(1, 0).empty());
  EXPECT_TRUE(objects.of(7, 7).empty());
}

TEST(Ranking, TiesGetTheMeanRank) {
  RankingSums sums({1, 2, 3});
  sums.add(0, 0);  // rank 1
  sums.add(1, 1);  // rank 2.5
  sums.add(0, 2);  // rank 2
  sums.add(9, 0);  // rank 10
  RankingMetrics const m = sums.metrics();
  EXPECT_EQ(m.ranked, 4);
  EXPECT_NEAR(m.mrr, (1 + 1 / 2.5 + 1 / 2.0 + 1 / 10.0) / 4, 1e-9);
  EXPECT_DOUBLE_EQ(m.mean_rank, (1 + 2.5 + 2 + 10) / 4);
  ASSERT_EQ(m.hits.size(), 3U);
  EXPECT_EQ(m.hits[0], (std::pair<std::int64_t, double>{1, 0.25}));
  EXPECT_EQ(m.hits[1], (std::pair<std::int64_t, double>{2, 0.5}));
  EXPECT_EQ(m.hits[2], (std::pair<std::int64_t, double>{3, 0.75}));
}

TEST(Ranking, SumsOfPartsAddUp) {
  RankingSums whole({10}), a({10}), b({10});
  for (std::uint64_t i = 0; i < 100; ++i) {
    whole.add(i * 7 % 31, i % 3);
    (i % 3 == 0 ? a : b).add(i * 7 % 31, i % 3);
  }
  std::vector<std::int64_t> joined(whole.values().size());
  std::transform(a.values().begin(), a.values().end(), b.values().begin(), joined.begin(), std::plus<>());
  EXPECT_TRUE(std::equal(joined.begin(), joined.end(), whole.values().begin(), whole.values().end()));
}

TEST(Ranking, MetricsOfNoTriplesAreZero) {
  RankingMetrics const m = RankingSums({1}).metrics();
  EXPECT_EQ(m.ranked, 0);
  EXPECT_EQ(m.mrr, 0);
}

TEST(Nearest, SortsByCosine) {
  std::vector<float> const rows{1, 0, 0, 0, /**/ 2, 0.1F, 0, 0, /**/ -3, 0, 0, 0, /**/ 0, 1, 0, 0, /**/ 0, 0, 0, 0};
  auto const found = nearest({rows.data(), 5, 2, 4}, 0, 3);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].entity, 1U);
  EXPECT_NEAR(found[0].cosine, 2 / std::sqrt(4.01), 1e-6);
  EXPECT_EQ(found[1].entity, 3U);  // cosine 0, like the row of zeros after it
  EXPECT_EQ(found[2].entity, 4U);
  EXPECT_EQ(nearest({rows.data(), 5, 2, 4}, 0, 100).back().entity, 2U);
}

}  // namespace
}  // namespace gpups::trainer::ranking_test
