// SPDX-License-Identifier: Apache-2.0
// Top-k SGD with error feedback: nothing is lost over any number of steps and ranks, and the number of elements sent
// follows the density.
#include "kernels/sparse/top_k_feedback.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/collectives/sparse/algorithms.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::test::top_k_feedback_test {
namespace {

using kernels::TopKFeedback;
using kernels::TopKFeedbackOptions;
using Units = std::vector<std::int64_t>;

// Normal numbers, multiples of the grid.
std::vector<float> gradient(Random& random, std::size_t n) {
  std::normal_distribution<double> normal(0, 0x1p-10);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(std::rint(normal(random) * 0x1p30) * 0x1p-30);
  return values;
}

TEST(TopKFeedback, SendsLargestAndKeepsRest) {
  Random random(1);
  Stream stream(Device::host(), 2);
  std::size_t const n = 100000;
  TopKFeedback feedback(n, {.density = .01});
  auto const values = gradient(random, n);
  auto const chosen = feedback.step(stream, values);
  ASSERT_EQ(chosen.indices.size(), 1000U);
  std::vector<float> magnitudes;
  for (float const x : values) magnitudes.push_back(std::abs(x));
  std::nth_element(magnitudes.begin(), magnitudes.begin() + 999, magnitudes.end(), std::greater<>());
  for (std::size_t i = 0; i < 1000; ++i) {
    float const x = values[chosen.indices[i]];
    EXPECT_GE(std::abs(x), magnitudes[999]);
    EXPECT_EQ(static_cast<double>(chosen.units[i]) * 0x1p-30, static_cast<double>(x));
    EXPECT_EQ(feedback.residual()[chosen.indices[i]], 0);
  }
}

TEST(TopKFeedback, SentCountFollowsDensity) {
  Random random(2);
  Stream stream(Device::host(), 2);
  std::size_t const n = 50000;
  TopKFeedback feedback(n, {.density = .01});
  int near = 0;
  for (int step = 0; step < 300; ++step) {
    std::size_t const count = feedback.step(stream, gradient(random, n)).indices.size();
    EXPECT_GE(count, 250U);
    EXPECT_LE(count, 1000U);
    near += count >= 400 && count <= 625 ? 1 : 0;
  }
  EXPECT_GE(near, 285);
}

TEST(TopKFeedback, DensityDecreasesDuringWarmUp) {
  Stream stream(Device::host(), 1);
  TopKFeedback feedback(1000, {.density = .001, .warmup_steps = 4});
  Random random(3);
  std::vector<std::size_t> sent;
  for (int step = 0; step < 6; ++step) {
    sent.push_back(feedback.k());
    feedback.step(stream, gradient(random, 1000));
  }
  EXPECT_EQ(sent, (std::vector<std::size_t>{250, 63, 16, 4, 1, 1}));
}

TEST(TopKFeedback, SentVelocitiesAreReset) {
  Stream stream(Device::host(), 1);
  TopKFeedback feedback(2, {.density = .5, .initial_density = .5, .momentum = .5F});
  auto const unit = [](double x) { return std::llround(x * 0x1p30); };
  auto first = feedback.step(stream, std::vector<float>{1, .25F});
  EXPECT_EQ(first.indices[0], 0U);
  EXPECT_EQ(feedback.velocity()[0], 0);
  auto second = feedback.step(stream, std::vector<float>{0, .25F});
  EXPECT_EQ(second.indices[0], 1U);
  EXPECT_EQ(second.units[0], unit(.25 + .375));  // velocities of both steps
  EXPECT_EQ(feedback.velocity()[1], 0);
}

TEST(TopKFeedback, RejectsInvalidGradientsAndOptions) {
  Stream stream(Device::host(), 1);
  for (float const wrong :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 0x1p16F}) {
    std::vector<float> const values{1, wrong};
    TopKFeedback feedback(2, {});
    expect_error([&] { feedback.step(stream, values); }, {"a gradient is not finite or", "coarser grid"});
  }
  expect_error([] { TopKFeedback(2, {.density = 0}); }, {"the density is 0 and the initial density 0.25"});
  expect_error([] { TopKFeedback(2, {.density = .5}); }, {"use 0 < density <= initial_density <= 1"});
  expect_error([] { TopKFeedback(2, {.momentum = 1}); }, {"the momentum is 1"});
  expect_error([] { TopKFeedback(2, {.exact_every = 0}); }, {"exact_every is 0"});
}

// Ranks that train, the sum of the gradients of all steps, and the sums that each rank has applied.
struct Training {
  static constexpr std::size_t kSize = 30000;

  explicit Training(int ranks) : applied(static_cast<std::size_t>(ranks), Units(kSize, 0)) {
    for (int r = 0; r < ranks; ++r) {
      feedback.emplace_back(kSize, TopKFeedbackOptions{.density = .01, .exact_every = 5});
    }
  }

  void step(kernels::StreamValues values, bool cut) {
    std::vector<std::vector<float>> gradients;
    for (std::size_t r = 0; r < feedback.size(); ++r) gradients.push_back(gradient(random, kSize));
    for (auto const& g : gradients) {
      for (std::size_t i = 0; i < kSize; ++i) given[i] += std::llround(static_cast<double>(g[i]) * 0x1p30);
    }
    MemoryCommunicators(static_cast<int>(feedback.size()), random())
        .run([&](comm::Communicator& comm) -> comm::CoTask<> {
          std::size_t const me = number(comm.me());
          auto const chosen = feedback[me].step(comm.stream(), gradients[me]);
          comm::StreamInput<std::int64_t> const terms{comm.stream(), chosen.indices,          chosen.units, kSize,
                                                      {values, -30}, feedback[me].residual(), nullptr};
          auto task = cut ? comm::spardl<std::int64_t>(comm, terms, kSize / 100)
                          : comm::ssar_recursive_doubling<std::int64_t>(comm, terms);
          auto total = co_await task;
          total.write(comm, applied[me], true);
        });
  }

  // Expects that the applied sums plus all residuals are the gradients.
  void expect_nothing_lost() const {
    for (auto const& other : applied) EXPECT_EQ(other, applied[0]);
    for (std::size_t i = 0; i < kSize; ++i) {
      std::int64_t sum = applied[0][i];
      for (auto const& f : feedback) sum += f.residual()[i];
      ASSERT_EQ(sum, given[i]) << "at " << i;
    }
  }

  std::vector<TopKFeedback> feedback;  // of each rank
  Units given = Units(kSize, 0);
  std::vector<Units> applied;
  Random random{4};
};

TEST(TopKFeedback, NoGradientIsLost) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (auto const values : {kernels::StreamValues::kHalf, kernels::StreamValues::kInt8}) {
      for (bool const cut : {false, true}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, form " << static_cast<int>(values)
                                        << (cut ? ", cut" : ""));
        Training training(ranks);
        for (int step = 0; step < 12; ++step) training.step(values, cut);
        training.expect_nothing_lost();
      }
    }
  }
}

// The residuals of removed ranks are added to those of other ranks.
TEST(TopKFeedback, NoGradientIsLostWithFewerRanks) {
  Training first(4);
  for (int step = 0; step < 6; ++step) first.step(kernels::StreamValues::kHalf, true);
  Training second(3);
  second.given = first.given;
  second.applied.assign(3, first.applied[0]);
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t i = 0; i < Training::kSize; ++i) {
      second.feedback[r % 3].residual()[i] += first.feedback[r].residual()[i];
    }
  }
  for (int step = 0; step < 6; ++step) second.step(kernels::StreamValues::kHalf, true);
  second.expect_nothing_lost();
}

}  // namespace
}  // namespace gpups::test::top_k_feedback_test
