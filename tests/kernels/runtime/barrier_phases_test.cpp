// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/barrier_phases.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace gpups::kernels::barrier_phases_test {
namespace {

constexpr std::size_t kSteps = 300, kBlocks = 7;

TEST(RunPhases, RunsEachBlockOnceAndStepsInOrder) {
  for (int const threads : {1, 2, 4, 16}) {
    Arena arena(threads);
    std::vector<std::vector<int>> calls(kSteps, std::vector<int>(kBlocks));
    std::vector<std::size_t> ended;
    std::atomic<int> early = 0;
    run_phases(
        arena, kSteps, kBlocks,
        [&](std::size_t step, std::size_t block) {
          ++calls[step][block];
          early += ended.size() == step ? 0 : 1;
        },
        [&](std::size_t step) {
          for (int const count : calls[step]) early += count == 1 ? 0 : 1;
          ended.push_back(step);
        });
    EXPECT_EQ(early, 0);
    EXPECT_EQ(calls, std::vector(kSteps, std::vector<int>(kBlocks, 1)));
    ASSERT_EQ(ended.size(), kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) EXPECT_EQ(ended[step], step);
  }
}

TEST(RunPhases, ExceptionInABlockEndsAllThreads) {
  Arena arena(4);
  auto const run = [&](std::size_t throws, bool between) {
    run_phases(
        arena, kSteps, kBlocks,
        [&](std::size_t step, std::size_t block) {
          EXPECT_LE(step, throws);
          if (!between && step == throws && block == 3) throw std::runtime_error("block");
        },
        [&](std::size_t step) {
          if (between && step == throws) throw std::runtime_error("between");
        });
  };
  for (std::size_t const step : {std::size_t{0}, kSteps / 2, kSteps - 1}) {
    EXPECT_THROW(run(step, false), std::runtime_error);
    EXPECT_THROW(run(step, true), std::runtime_error);
  }
}

TEST(RunPhases, CallsNothingWithoutStepsOrBlocks) {
  Arena arena(2);
  int calls = 0;
  auto const count = [&](auto...) { ++calls; };
  run_phases(arena, 0, kBlocks, count, count);
  run_phases(arena, kSteps, 0, count, count);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace gpups::kernels::barrier_phases_test
