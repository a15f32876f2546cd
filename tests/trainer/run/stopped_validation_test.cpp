// SPDX-License-Identifier: Apache-2.0
// A signal during a validation ends it: the run stops at that step, and a resumed run begins with the validation.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/target_kind.hpp"
#include "trainer/base/stop_signals.hpp"
#include "trainer/run/train.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::stopped_validation_test {
namespace {

constexpr int kEpochs = 5, kStepsPerEpoch = 2, kRanks = 2;

class StoppedValidation : public testing::Test {
 protected:
  StoppedValidation() {
    kinds_.assign(task_kinds().begin(), task_kinds().end());
    kinds_.push_back(&kind_);
  }

  // Trains, or resumes the run of that name. signal_in: the validation, from 1, during which rank 1 gets a signal.
  // Returns the summary.
  nlohmann::json run(std::string const& name, int signal_in, bool resume = false) {
    std::vector<SettingOverride> const settings{"train.epochs=" + std::to_string(kEpochs), "train.batch_size=13",
                                                "run.threads=1", "run.device=host"};
    Config const config = parse_config("[data]\nreader = 'targets'\n", "run.toml", folder_.path(), settings, kinds_);
    TargetData data;
    std::atomic<int> validations{0};
    data.evaluate = [&](Store& store, std::string_view) {
      if (number(store.rank()) == 1 && ++validations == signal_in) std::raise(SIGTERM);
      return Metrics{.json = {{"step", number(store.clock())}}, .quality = 1};
    };
    StopSignals const signals;
    run_ranks(Group::threads(kRanks),
              [&](Group one) { train(config, data, one, {.folder = folder_.path() / name, .resume = resume}); });
    return nlohmann::json::parse(std::ifstream(folder_.path() / name / "summary.json"));
  }

  // Returns the steps of the validations in metrics.jsonl.
  std::vector<int> validated(std::string const& name) const {
    std::vector<int> steps;
    std::ifstream in(folder_.path() / name / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      auto const json = nlohmann::json::parse(line);
      if (json.contains("valid")) steps.push_back(json.at("step"));
    }
    return steps;
  }

  test::TemporaryFolder folder_;
  TargetKind kind_;
  std::vector<TaskKind const*> kinds_;
};

TEST_F(StoppedValidation, IsTheFirstWorkOfTheResumedRun) {
  auto const once = run("once", 0);
  std::vector<int> const all = validated("once");
  ASSERT_EQ(all.size(), std::size_t{kEpochs});
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    std::string const name = "stopped-" + std::to_string(epoch);
    auto const stopped = run(name, epoch);
    EXPECT_EQ(stopped.at("finished"), false);
    EXPECT_EQ(stopped.at("steps"), epoch * kStepsPerEpoch);
    EXPECT_EQ(validated(name), std::vector<int>(all.begin(), all.begin() + epoch - 1));
    auto const resumed = run(name, 0, true);
    EXPECT_EQ(resumed.at("finished"), true);
    EXPECT_EQ(validated(name), all) << name;
    EXPECT_EQ(resumed.at("table_hash"), once.at("table_hash"));
  }
}

}  // namespace
}  // namespace gpups::trainer::stopped_validation_test
