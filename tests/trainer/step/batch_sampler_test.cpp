// SPDX-License-Identifier: Apache-2.0
// The batches of all ranks together are the global batch, for any number of ranks.
#include "trainer/step/batch_sampler.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace gpups::trainer::batch_sampler_test {
namespace {

TEST(BatchSampler, UnionOverRanksIsTheGlobalBatch) {
  for (std::uint32_t microbatches : {5, 8, 13}) {
    BatchOptions const one{.batch_size = 20, .microbatches = microbatches, .seed = 4};
    BatchSampler alone(103, one);
    ASSERT_EQ(alone.steps_per_epoch(), 6);
    for (std::int64_t t : {0, 3, 5, 6, 11, 100}) {
      Batch const whole = alone.make(Clock{t});
      ASSERT_EQ(whole.samples.size(), alone.samples(Clock{t}));
      ASSERT_EQ(whole.samples.size(), t % 6 == 0 ? 18U : 17U);
      for (std::uint32_t ranks = 1; ranks <= 5; ++ranks) {
        std::vector<std::uint64_t> joined;
        std::uint32_t microbatch = 0;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          BatchOptions options = one;
          options.rank = Rank{r}, options.ranks = ranks;
          Batch const part = BatchSampler(103, options).make(Clock{t});
          EXPECT_EQ(part.clock, Clock{t});
          EXPECT_EQ(part.epoch, t / 6);
          std::uint32_t next = 0;
          for (Microbatch const& m : part.microbatches) {
            EXPECT_EQ(m.first, next);
            EXPECT_GT(m.count, 0U);
            for (; next < m.first + m.count; ++next) {
              EXPECT_EQ(part.sample_numbers[next], joined.size());
              EXPECT_EQ(m.number, joined.size() * microbatches / whole.samples.size());
              joined.push_back(part.samples[next]);
            }
            EXPECT_GE(m.number, microbatch);
            EXPECT_GE(m.number, r * microbatches / ranks);
            EXPECT_LT(m.number, (r + 1) * microbatches / ranks);
            microbatch = m.number + 1;
          }
          EXPECT_EQ(next, part.samples.size());
        }
        EXPECT_EQ(joined, whole.samples) << "step " << t << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(BatchSampler, EpochHasEverySampleOnce) {
  BatchSampler batches(103, {.batch_size = 20, .microbatches = 8, .seed = 4});
  std::vector<int> seen(103);
  for (std::int64_t t = 6; t < 12; ++t) {
    for (std::uint64_t sample : batches.make(Clock{t}).samples) ++seen[sample];
  }
  EXPECT_EQ(seen, std::vector<int>(103, 1));
}

// A gradient is a mean over a batch, so the samples of a short batch would move their rows further.
TEST(BatchSampler, BatchesOfAnEpochHaveOneSize) {
  for (std::uint64_t samples : {1, 7, 19, 20, 21, 40, 41, 59, 103, 1025}) {
    BatchSampler batches(samples, {.batch_size = 20, .microbatches = 8, .seed = 4});
    std::uint64_t const steps = (samples + 19) / 20;
    ASSERT_EQ(batches.steps_per_epoch(), static_cast<std::int64_t>(steps));
    std::uint64_t sum = 0;
    for (std::int64_t t = 0; t < batches.steps_per_epoch(); ++t) {
      std::uint32_t const size = batches.samples(Clock{t});
      EXPECT_LE(size, 20U);
      EXPECT_GE(size, samples / steps);
      EXPECT_LE(size, samples / steps + 1);
      sum += size;
    }
    EXPECT_EQ(sum, samples);
  }
}

TEST(BatchSampler, RejectsMoreRanksThanMicrobatches) {
  test::expect_error([&] { BatchSampler(10, {.microbatches = 4, .ranks = 5}); },
                     {"5 ranks and 4 microbatches", "train.microbatches=5"});
}

TEST(BatchSampler, KeepsTheOrderOfSamplesThatAreNotShuffled) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    BatchSampler sampler(10, {.batch_size = 4, .microbatches = 2, .shuffled = false, .rank = Rank{rank}, .ranks = 2});
    std::vector<std::uint64_t> seen;
    for (std::int64_t clock = 3; clock < 6; ++clock) {  // the second epoch
      auto const samples = sampler.make(Clock{clock}).samples;
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    EXPECT_EQ(seen,
              (rank == 0 ? std::vector<std::uint64_t>{0, 1, 4, 5, 8} : std::vector<std::uint64_t>{2, 3, 6, 7, 9}));
  }
}

}  // namespace
}  // namespace gpups::trainer::batch_sampler_test
