// SPDX-License-Identifier: Apache-2.0
// An epoch visits every sample once, and any part of its order can be computed directly.
#include "trainer/step/batch_sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpups::trainer::epoch_order_test {
namespace {

std::vector<std::uint64_t> whole(EpochOrderOptions const& options, std::uint64_t epoch) {
  std::vector<std::uint64_t> order(options.samples);
  EpochOrder(options).fill(epoch, 0, order);
  return order;
}

TEST(EpochOrder, VisitsEverySampleOnce) {
  for (std::uint64_t samples : {1, 2, 7, 8, 9, 63, 64, 65, 1000, 1024, 4099}) {
    for (std::uint64_t blocks : {1, 3, 50}) {
      for (std::uint64_t epoch : {0, 1, 9}) {
        auto order = whole({.samples = samples, .seed = 5, .block_samples = 8, .window_blocks = blocks}, epoch);
        std::sort(order.begin(), order.end());
        std::vector<std::uint64_t> all(samples);
        std::iota(all.begin(), all.end(), std::uint64_t{0});
        ASSERT_EQ(order, all) << samples << " samples, windows of " << blocks;
      }
    }
  }
}

TEST(EpochOrder, FillStartsAnywhere) {
  EpochOrderOptions const options{.samples = 1003, .seed = 3, .block_samples = 16, .window_blocks = 4};
  EpochOrder order(options);
  for (std::uint64_t epoch : {4, 2}) {
    auto const expected = whole(options, epoch);
    for (std::uint64_t first : {1002, 0, 500, 63, 64, 65, 900}) {
      for (std::uint64_t count : {1, 80, 700}) {
        std::vector<std::uint64_t> part(std::min<std::uint64_t>(count, options.samples - first));
        order.fill(epoch, first, part);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(first)))
            << first << " " << count;
      }
    }
  }
}

TEST(EpochOrder, DependsOnSeedAndEpoch) {
  EpochOrderOptions const a{.samples = 500, .seed = 1}, b{.samples = 500, .seed = 2};
  EXPECT_EQ(whole(a, 0), whole(a, 0));
  EXPECT_NE(whole(a, 0), whole(a, 1));
  EXPECT_NE(whole(a, 0), whole(b, 0));
}

TEST(EpochOrder, WindowsContainWholeBlocks) {
  EpochOrderOptions const options{.samples = 1024, .seed = 8, .block_samples = 16, .window_blocks = 4};
  auto const order = whole(options, 0);
  for (std::size_t window = 0; window < 16; ++window) {
    std::vector<int> uses(64);
    for (std::size_t i = 0; i < 64; ++i) ++uses[order[window * 64 + i] / 16];
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 16), 4);
  }
}

// The mean position of each sample over many epochs is the middle of the epoch.
TEST(EpochOrder, IsUniformOverPositions) {
  EpochOrderOptions const options{.samples = 70, .seed = 1, .block_samples = 4, .window_blocks = 3};
  std::vector<double> sum(options.samples);
  EpochOrder order(options);
  std::vector<std::uint64_t> epoch(options.samples);
  int const epochs = 4000;
  for (int e = 0; e < epochs; ++e) {
    order.fill(static_cast<std::uint64_t>(e), 0, epoch);
    for (std::size_t i = 0; i < epoch.size(); ++i) sum[epoch[i]] += static_cast<double>(i);
  }
  double const deviation = 70.0 / std::sqrt(12.0 * epochs);
  for (double s : sum) EXPECT_NEAR(s / epochs, 34.5, 5 * deviation);
}

}  // namespace
}  // namespace gpups::trainer::epoch_order_test
