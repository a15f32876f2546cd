// SPDX-License-Identifier: Apache-2.0
// Runs that send only the largest gradients of dense layers: they learn about as well with fewer bytes, repeated runs
// give the same bits, and a run can be resumed on any number of ranks.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/tasks/click/click_train_fixture.hpp"

namespace gpups::trainer::click_top_k_test {
namespace {

class ClickTopKTest : public ClickTrainTest {
 protected:
  // A model whose first top layer is large enough for top-k.
  Settings with(Settings more) const {
    more.insert(more.begin(), {"model.top=[32]", "train.batch_size=60", "dense.learning_rate=0.01",
                               "optimizer.learning_rate=0.03", "run.report_every=5"});
    return small("dlrm", more);
  }
  static Settings top_k(int ranks, Settings more = {}) {
    more.insert(more.end(), {"dense.compression=top_k", "dense.density=0.1", fmt::format("run.ranks={}", ranks)});
    return more;
  }
  static double loss(nlohmann::json const& summary) { return summary.at("test").at("log_loss").get<double>(); }
  static double compression_ratio(nlohmann::json const& summary) {
    return summary.at("compression_ratio").get<double>();
  }
  static double reductions(nlohmann::json const& summary) { return summary.at("sent").at("allreduces").get<double>(); }
};

TEST_F(ClickTopKTest, LearnsNearlyAsWellWithTenthOfGradients) {
  auto const exact = run("exact", with({"train.epochs=6", "run.ranks=2"}));
  for (char const* algorithm : {"auto", "spardl"}) {
    std::string const setting = std::string("dense.algorithm=") + algorithm;
    auto const cut = run(algorithm, with(top_k(2, {"train.epochs=6", setting})));
    EXPECT_LT(loss(cut), 1.05 * loss(exact)) << algorithm;
    EXPECT_LT(cut.at("loss").get<double>(), 1.12 * exact.at("loss").get<double>()) << algorithm;
    EXPECT_LT(reductions(cut), .5 * reductions(exact)) << algorithm;  // small layers are not compressed
    EXPECT_GT(compression_ratio(cut), 1.2 * compression_ratio(exact)) << algorithm;
    EXPECT_NE(cut.at("dense_hash"), exact.at("dense_hash"));
  }
}

TEST_F(ClickTopKTest, RepeatedRunsGiveEqualBits) {
  for (int ranks : {1, 2, 3}) {
    auto const name = std::to_string(ranks);
    auto const once = result(run(name + "once", with(top_k(ranks))));
    EXPECT_EQ(result(run(name + "again", with(top_k(ranks, {"train.lookahead=1"})))), once);
    EXPECT_EQ(result(run(name + "threads", with(top_k(ranks, {"run.threads=2"})))), once);
  }
}

TEST_F(ClickTopKTest, ResumeGivesEqualBitsOnEqualRankCount) {
  Settings const sgd{"dense.optimizer=sgd", "dense.momentum=0.5", "dense.momentum_correction=true",
                     "dense.warmup_steps=6"};
  for (Settings const& more : {Settings{}, sgd}) {
    std::string const name = more.empty() ? "adam" : "sgd";
    auto const settings = [&](int ranks, int steps) {
      Settings all = more;
      all.push_back(fmt::format("train.steps={}", steps));
      return with(top_k(ranks, all));
    };
    auto whole = result(run(name + "whole", settings(2, 20)));
    run(name, settings(2, 11));
    auto resumed = result(run(name, settings(2, 20), true));
    for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
    EXPECT_EQ(resumed, whole) << name;
    int steps = 20;
    for (int const ranks : {3, 1, 2}) {
      auto const summary = run(name, settings(ranks, steps += 5), true);
      EXPECT_EQ(summary.at("finished"), true);
    }
  }
}

// Runs on the same number of ranks give equal bits, so a different hash is an effect of the setting. Settings of
// momentum are tested with SGD.
TEST_F(ClickTopKTest, EverySettingChangesTheResult) {
  int runs = 0;
  auto const summary = [&](Settings const& settings) {
    Settings all = with(top_k(2, {"train.steps=6"}));
    all.insert(all.end(), settings.begin(), settings.end());  // later settings replace earlier ones
    return run(fmt::format("run {}", runs++), all);
  };
  auto const hash = [&](Settings const& settings) { return summary(settings).at("dense_hash").get<std::string>(); };
  std::string const warm = "dense.warmup_steps=4", sgd = "dense.optimizer=sgd";
  std::set<std::string> hashes;
  for (Settings const& settings :
       std::vector<Settings>{{},
                             {"dense.density=0.2"},
                             {"dense.codec=lossless"},
                             {"dense.codec=float16"},
                             {"dense.codec=int8"},
                             {"dense.algorithm=spardl"},
                             {warm},
                             {"dense.warmup_steps=2"},
                             {warm, "dense.initial_density=0.5"},
                             {sgd},
                             {sgd, "dense.momentum_correction=true"},
                             {sgd, "dense.momentum_correction=true", "dense.momentum=0.5"}}) {
    EXPECT_TRUE(hashes.insert(hash(settings)).second) << fmt::format("{}", fmt::join(settings, " "));
  }
  auto const sent = [&](Settings const& settings) { return reductions(summary(settings)); };
  double const usual = sent({});
  EXPECT_LT(sent({"dense.codec=int8"}), usual);
  EXPECT_GT(sent({"dense.codec=lossless"}), usual);
  EXPECT_LT(usual, sent({warm}));
  EXPECT_LT(sent({warm}), sent({warm, "dense.initial_density=0.5"}));
}

TEST_F(ClickTopKTest, ReportsAllreduceAlgorithms) {
  using testing::AllOf, testing::ElementsAre, testing::HasSubstr;
  auto const lines_of = [&](int ranks, Settings const& settings) {
    auto const summary = run(fmt::format("{} {}", ranks, settings.size()), with(settings));
    return summary.value("allreduces", std::vector<std::string>{});
  };
  EXPECT_THAT(lines_of(1, top_k(1, {"train.steps=2"})), ElementsAre());
  EXPECT_THAT(lines_of(3, {"train.steps=2", "run.ranks=3"}),
              ElementsAre(AllOf(HasSubstr("exact, in units of 2^-30"), HasSubstr("a rank sends "),
                                HasSubstr(" bytes per number"))));
  EXPECT_THAT(
      lines_of(3, top_k(3, {"train.steps=2", "dense.codec=float16"})),
      ElementsAre(
          HasSubstr(
              "in 1 allreduce per step, largest 10 % of each rank's elements, sent as half, algorithm spardl (\"auto\" "
              "for 3 ranks): as ssar_split_allgather"),
          HasSubstr("exact, in units")));
}

TEST_F(ClickTopKTest, ResumeRejectsChangedCompression) {
  run("run", with(top_k(1, {"train.steps=2"})));
  test::expect_error([&] { run("run", with({"train.steps=4"}), true); },
                     {"dense.compression = 'top_k', and the configuration sets 'none'"});
}

TEST_F(ClickTrainTest, RejectsPrecisionsOfGpusOnTheHost) {
  test::expect_error([&] { run("run", small("dlrm", {"dense.precision=tf32"})); },
                     {"dense.precision is \"tf32\"", "the device is the host"});
}

}  // namespace
}  // namespace gpups::trainer::click_top_k_test
