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

}  // namespace
}  // namespace gpups::trainer::keep_best_test
