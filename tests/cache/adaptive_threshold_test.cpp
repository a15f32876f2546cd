// SPDX-License-Identifier: Apache-2.0
// The adaptive threshold: its first value, how it follows the density, and its upper limit, the envelope.
#include "cache/feedback/adaptive_threshold.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/inputs.hpp"

namespace gpups::cache::adaptive_threshold_test {
namespace {

constexpr float kNoEnvelope = 1e30F;

AdaptiveThreshold threshold_at(RowFilter const& filter, std::uint64_t steps, float bound) {
  AdaptiveThreshold made(filter);
  made.set_state({steps, bound});
  return made;
}

TEST(AdaptiveThreshold, NeverExceedsEnvelope) {
  RowFilter const filter{.age_max = 5, .density = .1F, .threshold_max = 4};
  EXPECT_FLOAT_EQ(threshold_at(filter, 0, 1e6F).next(), 4);
  EXPECT_FLOAT_EQ(threshold_at(filter, 3, 1e6F).next(), 2);
  EXPECT_FLOAT_EQ(threshold_at(filter, 15, 1e6F).next(), 1);
  EXPECT_FLOAT_EQ(threshold_at(filter, 9999, 1e6F).next(), .04F);
  EXPECT_FLOAT_EQ(threshold_at(filter, 15, .5F).next(), .5F);
}

// The first threshold is the magnitude that the fraction `share` of the first rows reach.
TEST(AdaptiveThreshold, StartsAtQuantileOfFirstMagnitudes) {
  std::vector<float> largest;
  for (int i = 1; i <= 100; ++i) largest.push_back(static_cast<float>(i * 37 % 101));  // 1 .. 100
  for (auto const& [share, least] : {std::pair{.25F, 76.0F}, {.5F, 51.0F}, {1.0F, 1.0F}, {0.0F, 100.0F}}) {
    AdaptiveThreshold bound({.age_max = 5, .density = share, .threshold_max = kNoEnvelope});
    EXPECT_TRUE(bound.is_new());
    EXPECT_EQ(bound.next(), 0);  // all rows are sent
    bound.begin({});
    EXPECT_TRUE(bound.is_new());
    bound.begin(largest);
    EXPECT_FALSE(bound.is_new());
    EXPECT_EQ(bound.next(), least) << "share " << share;
  }
}

TEST(AdaptiveThreshold, AdaptsExponentiallyToDensity) {
  RowFilter const filter{.age_max = 5, .density = .25F, .threshold_max = kNoEnvelope};
  AdaptiveThreshold bound = threshold_at(filter, 7, 3);
  double want = 3;
  std::uint64_t steps = 7;
  for (std::size_t const sent : {100, 25, 0, 80, 0, 0, 26}) {
    bound.count(sent, 100);
    want *= std::exp(.5 * (static_cast<double>(sent) / 100 - .25));
    EXPECT_NEAR(bound.next() / want, 1, 1e-6);
    EXPECT_EQ(bound.state().steps, ++steps);
  }
  float const before = bound.next();
  bound.count(0, 0);  // a step without rows changes nothing
  EXPECT_EQ(bound.next(), before);
  EXPECT_EQ(bound.state().steps, steps);
}

// The threshold adapts from the envelope: from a value far above it, it would send nothing for many steps.
TEST(AdaptiveThreshold, AdaptsFromEnvelopeWhenCapped) {
  RowFilter const filter{.age_max = 5, .density = .5F, .threshold_max = 10};
  AdaptiveThreshold bound = threshold_at(filter, 99, 1e6F);
  bound.count(0, 100);
  EXPECT_FLOAT_EQ(bound.next(), static_cast<float>(std::exp(-.25)));
  bound.count(100, 100);
  EXPECT_FLOAT_EQ(bound.next(), 10 / std::sqrt(102.0F));
}

// For every density and every first value, the fraction of rows that are sent converges to the density.
TEST(AdaptiveThreshold, ConvergesToDensity) {
  for (float const share : {.1F, .3F, .7F}) {
    for (float const start : {1e-3F, .5F, 20.0F}) {
      SCOPED_TRACE(testing::Message() << "share " << share << " from " << start);
      AdaptiveThreshold bound = threshold_at({.age_max = 5, .density = share, .threshold_max = kNoEnvelope}, 0, start);
      test::Random random(3);
      std::size_t sent_late = 0;
      constexpr std::size_t kRows = 500, kSteps = 300, kLate = 100;
      for (std::size_t step = 0; step < kSteps; ++step) {
        std::size_t sent = 0;
        for (std::size_t i = 0; i < kRows; ++i) sent += test::uniform(random) >= double{bound.next()} ? 1U : 0U;
        bound.count(sent, kRows);
        if (step >= kSteps - kLate) sent_late += sent;
      }
      EXPECT_NEAR(static_cast<double>(sent_late) / (kLate * kRows), share, .02);
    }
  }
}

TEST(AdaptiveThreshold, MaximumOfZeroSendsAllRows) {
  AdaptiveThreshold bound({.age_max = 5, .density = .1F, .threshold_max = 0});
  EXPECT_FALSE(bound.is_new());
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(bound.next(), 0);
    bound.count(100, 100);
  }
}

TEST(AdaptiveThreshold, ContinuesFromRestoredState) {
  RowFilter const filter{.age_max = 5, .density = .2F, .threshold_max = 3};
  AdaptiveThreshold whole(filter);
  whole.begin({1, 2, 3, 4, 5});
  for (std::size_t step = 0; step < 10; ++step) {
    AdaptiveThreshold resumed(filter);
    resumed.set_state(whole.state());
    for (AdaptiveThreshold* bound : {&whole, &resumed}) bound->count(step * 7 % 11, 11);
    EXPECT_EQ(resumed.next(), whole.next());
    EXPECT_EQ(resumed.state().steps, whole.state().steps);
  }
}

}  // namespace
}  // namespace gpups::cache::adaptive_threshold_test
