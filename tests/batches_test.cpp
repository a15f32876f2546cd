// SPDX-License-Identifier: Apache-2.0
// The ranks' batches are the global batch, whatever the number of ranks.
#include "trainer/batches.hpp"

#include <gtest/gtest.h>

#include "tests/expect_error.hpp"

namespace gpups::trainer {
namespace {

std::vector<Triple> numbered(std::uint32_t count) {
  std::vector<Triple> triples;
  for (std::uint32_t i = 0; i < count; ++i) triples.push_back({i, 0, i + 1});
  return triples;
}

TEST(Batches, TheUnionOverRanksIsTheGlobalBatch) {
  auto const triples = numbered(103);
  for (std::uint32_t microbatches : {5, 8, 13}) {
    BatchOptions const one{.batch = 20, .microbatches = microbatches, .seed = 4};
    Batches alone(triples, one);
    ASSERT_EQ(alone.steps_per_epoch(), 6);
    for (std::int64_t t : {0, 3, 5, 6, 11, 100}) {
      Batch const whole = alone.make(Clock{t});
      ASSERT_EQ(whole.triples.size(), alone.samples(Clock{t}));
      ASSERT_EQ(whole.triples.size(), t % 6 == 5 ? 3U : 20U);
      for (std::uint32_t ranks = 1; ranks <= 5; ++ranks) {
        std::vector<Triple> joined;
        std::uint32_t microbatch = 0;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          BatchOptions options = one;
          options.rank = Rank{r}, options.ranks = ranks;
          Batch const part = Batches(triples, options).make(Clock{t});
          EXPECT_EQ(part.clock, Clock{t});
          EXPECT_EQ(part.epoch, t / 6);
          std::uint32_t next = 0;
          for (Microbatch const& m : part.microbatches) {
            EXPECT_EQ(m.first, next);
            EXPECT_GT(m.count, 0U);
            for (; next < m.first + m.count; ++next) {
              EXPECT_EQ(part.sample_numbers[next], joined.size());
              EXPECT_EQ(m.number, joined.size() * microbatches / whole.triples.size());
              joined.push_back(part.triples[next]);
            }
            EXPECT_GE(m.number, microbatch);
            EXPECT_GE(m.number, r * microbatches / ranks);
            EXPECT_LT(m.number, (r + 1) * microbatches / ranks);
            microbatch = m.number + 1;
          }
          EXPECT_EQ(next, part.triples.size());
        }
        EXPECT_EQ(joined, whole.triples) << "step " << t << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Batches, AnEpochIsEveryTripleOnce) {
  auto const triples = numbered(103);
  Batches batches(triples, {.batch = 20, .microbatches = 8, .seed = 4});
  std::vector<int> seen(103);
  for (std::int64_t t = 6; t < 12; ++t) {
    for (Triple const& triple : batches.make(Clock{t}).triples) ++seen[triple.subject];
  }
  EXPECT_EQ(seen, std::vector<int>(103, 1));
}

TEST(Batches, MoreRanksThanMicrobatchesAreRefused) {
  auto const triples = numbered(10);
  test::expect_error([&] { Batches(triples, {.microbatches = 4, .ranks = 5}); },
                     {"5 ranks and 4 microbatches", "train.microbatches=5"});
}

}  // namespace
}  // namespace gpups::trainer
