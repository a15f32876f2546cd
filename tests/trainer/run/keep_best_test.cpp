// SPDX-License-Identifier: Apache-2.0
// train.keep_best: the result of a run is the model of its best validation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "tests/trainer/tasks/target_kind.hpp"
#include "trainer/run/saved_run.hpp"

namespace gpups::trainer::keep_best_test {
namespace {

using test::expect_error;

constexpr std::int64_t kStepsPerEpoch = 7;

// A graph model whose learning rate is so large that the best of eight validations is not the last.
class KeepBest : public TrainTest {
 protected:
  static Settings unsteady(Settings more) {
    more.insert(more.begin(), {"optimizer.learning_rate=2", "model.init_scale=1"});
    return more;
  }
  nlohmann::json evaluate(std::string const& name, std::string const& split) const {
    return wait_evaluate_run(open_run(folder_.path() / name, {}), Group::alone(), split).json;
  }
  // Returns the bytes of the exported rows of entities.
  std::string exported(std::string const& name) const {
    auto const out = folder_.path() / ("exported-" + name);
    export_run(folder_.path() / name, {}, out, ModelFormat::kFlat);
    std::ifstream in(out / "rows" / "entities.values.bin", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has_best_folder(std::string const& name) const {
    return std::filesystem::exists(folder_.path() / name / "best");
  }
};

TEST_F(KeepBest, ReportsTheModelOfTheBestValidation) {
  auto const summary = run("run", unsteady({"train.epochs=8"}));
  std::int64_t const best = summary.at("best").at("step");
  ASSERT_GT(best, 0);
  ASSERT_LT(best, summary.at("steps").get<std::int64_t>()) << "the last validation is the best";
  double most = 0;
  std::int64_t most_at = 0;
  for (auto const& line : lines("run", "valid")) {
    if (line.at("valid").at("mrr") <= most) continue;
    most = line.at("valid").at("mrr");
    most_at = line.at("step");
  }
  EXPECT_EQ(best, most_at);
  EXPECT_EQ(summary.at("best").at("valid").at("mrr"), most);
  EXPECT_EQ(summary.at("best").at("epoch"), static_cast<double>(best) / kStepsPerEpoch);

  // A run that ends at that step has the same model.
  auto const shorter = run("shorter", unsteady({fmt::format("train.steps={}", best)}));
  EXPECT_EQ(summary.at("best").at("table_hash"), shorter.at("table_hash"));
  EXPECT_EQ(summary.at("test"), shorter.at("test"));
  EXPECT_NE(summary.at("table_hash"), shorter.at("table_hash"));

  EXPECT_EQ(evaluate("run", "test"), summary.at("test"));
  EXPECT_EQ(evaluate("run", "valid"), summary.at("best").at("valid"));
}

TEST_F(KeepBest, IsTheSameOnTwoRanksAndAfterAResume) {
  auto const one = run("one", unsteady({"train.epochs=8"}));
  EXPECT_EQ(result(run("two", unsteady({"train.epochs=8", "run.ranks=2"}))), result(one));
  run("resumed", unsteady({"train.epochs=2"}));
  run("resumed", unsteady({"train.epochs=5", "run.ranks=2"}), true);
  EXPECT_EQ(result(run("resumed", unsteady({"train.epochs=8"}), true)), result(one));
}

TEST_F(KeepBest, KeepsTheLastCheckpointOfAResumeIfNothingIsBetter) {
  auto const first = run("run", unsteady({"train.epochs=8"}));
  std::int64_t const best = first.at("best").at("step");
  auto const until_best = run("resumed", unsteady({fmt::format("train.steps={}", best)}));
  EXPECT_EQ(until_best.at("best").at("step"), best);
  auto const resumed = run("resumed", unsteady({fmt::format("train.steps={}", best + kStepsPerEpoch)}), true);
  EXPECT_EQ(resumed.at("best"), first.at("best"));
  EXPECT_EQ(evaluate("resumed", "test"), first.at("test"));
}

TEST_F(KeepBest, PatienceEndsWithTheBestModel) {
  auto const summary = run("run", unsteady({"train.epochs=50", "train.patience=2"}));
  std::int64_t const best = summary.at("best").at("step");
  EXPECT_EQ(summary.at("steps"), best + 2 * kStepsPerEpoch);
  auto const shorter = run("shorter", unsteady({fmt::format("train.steps={}", best)}));
  EXPECT_EQ(summary.at("test"), shorter.at("test"));
}

// A run that is killed may leave a best checkpoint with more steps than the last one, or only the best.
TEST_F(KeepBest, TrainingContinuesFromTheBestCheckpointIfItHasMoreSteps) {
  auto const whole = run("run", unsteady({"train.epochs=8"}));
  std::filesystem::remove_all(folder_.path() / "run" / "checkpoint");
  EXPECT_EQ(evaluate("run", "test"), whole.at("test"));
  expect_error([&] { run("run", unsteady({"train.epochs=8"})); }, {"contains a checkpoint", "--resume"});
  EXPECT_EQ(result(run("run", unsteady({"train.epochs=8", "run.ranks=2"}), true)), result(whole));
}

TEST_F(KeepBest, OtherCommandsUseTheModelOfTheBestValidation) {
  auto const whole = run("run", unsteady({"train.epochs=8"}));
  run("shorter", unsteady({fmt::format("train.steps={}", whole.at("best").at("step").get<std::int64_t>())}));
  EXPECT_EQ(exported("run"), exported("shorter"));
  // The model of the last step is there too.
  auto const last = run("last", unsteady({"train.epochs=8", "train.keep_best=false"}));
  EXPECT_EQ(wait_evaluate_run(open_run(folder_.path() / "run", {"train.keep_best=false"}), Group::alone(), "test").json,
            last.at("test"));
  EXPECT_NE(last.at("test"), whole.at("test"));
}

TEST_F(KeepBest, AMissingBestModelIsAnErrorAndTheNextIsKept) {
  auto const summary = run("run", unsteady({"train.epochs=8"}));
  auto const best = summary.at("best").at("step").get<int>();
  ASSERT_LT(best, 8 * kStepsPerEpoch);
  std::filesystem::remove_all(folder_.path() / "run" / "best");
  expect_error([&] { open_run(folder_.path() / "run", {}); },
               {fmt::format("the model of step {},", best).c_str(), "train.keep_best=false"});
  auto const resumed = run("run", unsteady({"train.epochs=9"}), true);
  EXPECT_EQ(resumed.at("best").at("step"), 9 * kStepsPerEpoch);
}

TEST_F(KeepBest, MayBeTurnedOffAndOnAgain) {
  run("run", unsteady({"train.epochs=5"}));
  EXPECT_FALSE(run("run", unsteady({"train.epochs=6", "train.keep_best=false"}), true).contains("best"));
  auto const summary = run("run", unsteady({"train.epochs=7"}), true);
  EXPECT_EQ(summary.at("best").at("step"), 7 * kStepsPerEpoch);  // the first validation since then
  EXPECT_EQ(evaluate("run", "test"), summary.at("test"));
}

TEST_F(KeepBest, CanBeTurnedOff) {
  auto const summary = run("run", unsteady({"train.epochs=8", "train.keep_best=false"}));
  EXPECT_FALSE(summary.contains("best"));
  EXPECT_FALSE(has_best_folder("run"));
  EXPECT_EQ(evaluate("run", "test"), summary.at("test"));
  EXPECT_EQ(evaluate("run", "valid"), summary.at("valid"));
}

// Validations of a model, with given qualities.
class EqualValidations : public testing::Test {
 protected:
  EqualValidations() {
    kinds_.assign(task_kinds().begin(), task_kinds().end());
    kinds_.push_back(&kind_);
  }
  // Trains for an epoch of 2 steps for each quality. Returns the log.
  std::string train_with(std::vector<double> const& qualities, std::vector<std::string> const& more = {},
                         bool resume = false) {
    std::vector<SettingOverride> settings{"train.batch_size=13", "run.threads=1", "run.device=host",
                                          "train.epochs=" + std::to_string(qualities.size())};
    settings.insert(settings.end(), more.begin(), more.end());
    Config const config = parse_config("[data]\nreader = 'targets'\n", "run.toml", folder_.path(), settings, kinds_);
    TargetData data;
    data.evaluate = [&](Store& store, std::string_view) {
      std::int64_t const step = number(store.clock());
      return Metrics{.json = {{"step", step}},
                     .text = "accuracy 0 of 3 questions",
                     .quality = qualities.at(static_cast<std::size_t>(step / 2 - 1))};
    };
    testing::internal::CaptureStderr();
    run_ranks(std::vector<Group>{Group::alone()},
              [&](Group one) { train(config, data, one, {.folder = folder_.path() / "run", .resume = resume}); });
    std::string log = testing::internal::GetCapturedStderr();
    summary_ = nlohmann::json::parse(std::ifstream(folder_.path() / "run" / "summary.json"));
    return log;
  }
  void expect_best_is_last(bool is_said, std::string const& log) const {
    EXPECT_EQ(summary_.at("best").at("step"), summary_.at("steps"));
    EXPECT_EQ(summary_.at("best").at("table_hash"), summary_.at("table_hash"));
    EXPECT_EQ(summary_.at("best").at("valid"), summary_.at("valid"));
    EXPECT_EQ(log.find("it chose no model") != log.npos, is_said) << log;
  }

  test::TemporaryFolder folder_;
  TargetKind kind_;
  std::vector<TaskKind const*> kinds_;
  nlohmann::json summary_;
};

TEST_F(EqualValidations, TheLastIsKeptAndTheLogSaysSo) {
  std::string const log = train_with({0, 0, 0});
  expect_best_is_last(true, log);
  EXPECT_NE(log.find("all 3 validations have the same metric, accuracy 0 of 3 questions"), log.npos) << log;
  // So it is if the run is resumed, until one differs.
  expect_best_is_last(true, train_with({0, 0, 0, 0}, {}, true));
  expect_best_is_last(false, train_with({0, 0, 0, 0, 1}, {}, true));
}

TEST_F(EqualValidations, ASingleOneSaysNothing) { expect_best_is_last(false, train_with({0})); }

TEST_F(EqualValidations, OfTheBestTheLastIsKept) {
  std::string const log = train_with({.1, .5, .2, .5, .4});
  EXPECT_EQ(summary_.at("best").at("step"), 8);
  EXPECT_EQ(log.find("it chose no model"), log.npos) << log;
}

TEST_F(EqualValidations, AreNoImprovement) {
  std::string const log = train_with({.5, .5, .5, .5, .5, .5}, {"train.patience=2"});
  EXPECT_EQ(summary_.at("steps"), 6);
  expect_best_is_last(true, log);
}

TEST_F(EqualValidations, SayNothingIfTheyChooseNothing) {
  std::string const log = train_with({0, 0, 0}, {"train.keep_best=false"});
  EXPECT_FALSE(summary_.contains("best"));
  EXPECT_EQ(log.find("it chose no model"), log.npos) << log;
}

}  // namespace
}  // namespace gpups::trainer::keep_best_test
