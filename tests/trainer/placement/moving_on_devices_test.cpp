// SPDX-License-Identifier: Apache-2.0
// Runs on GPUs whose rows move have the bits of one GPU, and train with bounded staleness.
#include <gtest/gtest.h>

#include "gpups/device.hpp"
#include "tests/trainer/run/train_fixture.hpp"

namespace gpups::trainer::moving_on_devices_test {
namespace {

class MovingGraphsOnCuda : public TrainTest {
 protected:
  void SetUp() override {
    TrainTest::SetUp();
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(MovingGraphsOnCuda, BitsAreThoseOfOneRank) {
  auto const alone = result(run("alone", {"run.ranks=1", "run.device=cuda:0"}));
  for (std::string const policy : {"adaptive", "random"}) {
    for (std::string const ranks : {"2", "4"}) {
      auto const all = run(policy + ranks, {"run.ranks=" + ranks, "run.device=cuda:0", "placement.policy=" + policy});
      EXPECT_EQ(result(all), alone) << policy << " on " << ranks << " ranks";
      EXPECT_GT(all.at("moved_rows"), 0);
    }
  }
}

TEST_F(MovingGraphsOnCuda, CopiesAreReadWithStaleness) {
  auto const all =
      run("stale", {"run.ranks=2", "run.device=cuda:0", "placement.policy=adaptive", "placement.staleness=3"});
  EXPECT_GT(all.at("leased_keys"), 0);
  EXPECT_GE(all.at("leased_steps"), all.at("leased_keys"));
}

}  // namespace
}  // namespace gpups::trainer::moving_on_devices_test
