// SPDX-License-Identifier: Apache-2.0
// What a whole training step of a rank costs apart from its work, on emulated devices: the round, dense layers and the
// next batch included. Each rank has a device of its own, and NCCL sums.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"
#include "tests/trainer/tasks/click/click_train_fixture.hpp"

namespace gpups::trainer::step_costs_test {
namespace {

constexpr int kRanks = 8;

struct StepCosts {
  double waits, pageable_copies, host_copies, launches;
};

class StepCostsOnCuda : public ClickTrainTest {
 protected:
  ~StepCostsOnCuda() override { emulator::options() = before_; }

  // Returns what is counted in a run of so many steps, in all ranks together.
  emulator::RuntimeCounts counts_of(int steps) const {
    emulator::options() = {.devices = kRanks};
    emulator::runtime_counts() = {};
    run("steps" + std::to_string(steps),
        small("dlrm", {"run.ranks=" + std::to_string(kRanks), "run.device=cuda", "data.test_share=0",
                       "train.keep_best=false", "train.steps=" + std::to_string(steps)}));
    return emulator::runtime_counts();
  }

  // Returns the costs of a step of a rank after the first steps.
  StepCosts costs() const {
    constexpr int kFirst = 20, kSteps = 20;
    auto const few = counts_of(kFirst), many = counts_of(kFirst + kSteps);
    auto const mean = [](std::uint64_t more, std::uint64_t less) {
      return static_cast<double>(more - less) / (kRanks * kSteps);
    };
    return {mean(many.stream_waits + many.event_waits, few.stream_waits + few.event_waits),
            mean(many.pageable_copies, few.pageable_copies),
            mean(many.to_device.count + many.to_host.count, few.to_device.count + few.to_host.count),
            mean(many.launches, few.launches)};
  }

 private:
  emulator::Options const before_ = emulator::options();
};

// Waits for a stream or an event: six of the round, one for the distinct keys of the next batch, one for the losses,
// two for the sums of dense gradients, and one for the update of the layers. The rest is work that is not of each step.
TEST_F(StepCostsOnCuda, AreFewWaitsAndCopies) {
  auto const of = costs();
  EXPECT_LT(of.waits, 11.5);
  EXPECT_LT(of.pageable_copies, 2.5);
  EXPECT_LT(of.host_copies, 35);
  EXPECT_LT(of.launches, 80);
}

}  // namespace
}  // namespace gpups::trainer::step_costs_test
