// SPDX-License-Identifier: Apache-2.0
// Runs with placement.initial = "graph" give the same bits for every number of ranks, and can be resumed.
#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/train_fixture.hpp"
#include "trainer/random.hpp"

namespace gpups::trainer {
namespace {

using test::expect_error;

using PlacedTraining = TrainTest;

TEST_F(PlacedTraining, BitsAreIndependentOfRanks) {
  for (std::string const sampling : {"triple", "shared"}) {
    Settings settings{"placement.initial=graph", "model.sampling=" + sampling};
    if (sampling == "shared") settings.insert(settings.end(), {"model.negatives=16", "model.local_negatives=0.5"});
    auto const with = [&](std::string const& setting) {
      Settings all = settings;
      all.push_back(setting);
      return result(run(sampling + setting, all));
    };
    auto const alone = with("run.ranks=1");
    EXPECT_EQ(with("run.ranks=2"), alone);
    EXPECT_EQ(with("run.ranks=3"), alone);
    EXPECT_EQ(with("run.ranks=8"), alone);
    EXPECT_EQ(with("train.lookahead=1"), alone);
    Settings hash{"model.sampling=" + sampling};
    if (sampling == "shared") hash.emplace_back("model.negatives=16");
    EXPECT_NE(result(run(sampling + "hash", hash)).at("table_hash"), alone.at("table_hash"));
  }
}

TEST_F(PlacedTraining, LocalNegativesChangeTheTraining) {
  Settings const settings{"placement.initial=graph", "model.sampling=shared", "model.negatives=16"};
  Settings local = settings;
  local.emplace_back("model.local_negatives=0.5");
  EXPECT_NE(run("none", settings).at("table_hash"), run("half", local).at("table_hash"));
}

TEST_F(PlacedTraining, ResumedRunEqualsUninterruptedRun) {
  Settings const graph{"placement.initial=graph"};
  auto whole = result(run("whole", {"placement.initial=graph", "train.steps=20"}));
  run("run", {"placement.initial=graph", "train.steps=9", "run.ranks=3"});
  auto resumed = result(run("run", {"placement.initial=graph", "train.steps=20", "run.ranks=2"}, true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
  expect_error([&] { run("run", {"train.steps=30"}, true); }, {"placement.initial"});
}

TEST_F(PlacedTraining, RejectsSettingsWithoutEffect) {
  expect_error(
      [&] {
        config({"model.sampling=shared", "model.local_negatives=0.5"});
      },
      {"model.local_negatives", "placement.initial"});
  expect_error([&] { config({"placement.initial=graph", "model.local_negatives=0.5"}); }, {"model.sampling"});
  expect_error([&] { config({"placement.initial=metis"}); }, {"hash, graph"});
  expect_error(
      [] {
        parse_config("[data]\nreader = \"clicks\"\ntrain = \"x\"\n[placement]\ninitial = \"graph\"\n", "test", ".");
      },
      {"placement.initial has no effect"});
}

class PlacedRatings : public RunTest {
 protected:
  PlacedRatings()
      : RunTest({"data.reader=ratings", "data.train=ratings.txt", "model.dim=8", "placement.initial=graph"}) {
    std::string text;
    for (std::uint64_t i = 0; i < 900; ++i) {
      text += fmt::format("{} {} {}\n", 100 + below(60, random_bits(71, i)), below(40, random_bits(72, i)), i % 5);
    }
    folder_.write("ratings.txt", text);
  }
};

TEST_F(PlacedRatings, BitsAreIndependentOfRanks) {
  for (std::string const reuse : {"false", "true"}) {
    auto const on = [&](std::string const& ranks) {
      return result(run(reuse + ranks, {"run.ranks=" + ranks, "train.reuse_batches=" + reuse}));
    };
    auto const alone = on("1");
    EXPECT_EQ(on("2"), alone);
    EXPECT_EQ(on("3"), alone);
  }
}

}  // namespace
}  // namespace gpups::trainer
