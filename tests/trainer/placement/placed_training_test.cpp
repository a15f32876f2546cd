// SPDX-License-Identifier: Apache-2.0
// Runs with placement.initial = "graph" give the same bits for every number of ranks, and can be resumed.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/graph/graph_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::placed_training_test {
namespace {

using test::expect_error;

std::string const kSamplings[] = {"triple", "shared"};

class PlacedTraining : public TrainTest {
 protected:
  // local: of model.local_negatives. more: a setting that may replace one of these.
  static Settings settings(std::string const& sampling, std::string const& local, std::string const& more) {
    Settings all{"placement.initial=graph", "model.sampling=" + sampling};
    if (local != "0") all.push_back("model.local_negatives=" + local);
    if (sampling == "shared") all.emplace_back("model.negatives=16");
    all.push_back(more);
    return all;
  }
};

TEST_F(PlacedTraining, BitsAreIndependentOfRanks) {
  for (std::string const& sampling : kSamplings) {
    for (std::string const local : {"0", "0.5", "1"}) {
      if (sampling == "shared" && local != "0.5") continue;
      SCOPED_TRACE(sampling + " " + local);
      auto const with = [&](std::string const& setting) {
        return result(run(sampling + local + setting, settings(sampling, local, setting)));
      };
      auto const alone = with("run.ranks=1");
      EXPECT_EQ(with("run.ranks=2"), alone);
      EXPECT_EQ(with("run.ranks=3"), alone);
      EXPECT_EQ(with("run.ranks=4"), alone);
      EXPECT_EQ(with("run.ranks=8"), alone);
      EXPECT_EQ(with("train.lookahead=1"), alone);
    }
  }
}

TEST_F(PlacedTraining, PlacementAndLocalNegativesChangeTheTraining) {
  for (std::string const& sampling : kSamplings) {
    std::set<std::string> hashes;
    auto const add = [&](std::string const& local, std::string const& setting) {
      hashes.insert(run(sampling + local + setting, settings(sampling, local, setting)).at("table_hash").dump());
    };
    add("0", "placement.initial=hash");
    for (std::string const local : {"0", "0.5", "1"}) add(local, "run.ranks=1");
    EXPECT_EQ(hashes.size(), 4U) << sampling;
  }
}

TEST_F(PlacedTraining, ResumedRunEqualsUninterruptedRun) {
  auto const with = [](std::string const& steps, std::string const& ranks) {
    // A run that ends at step 9 evaluates its model there, which may be the best one.
    return Settings{"placement.initial=graph", "train.keep_best=false", "train.steps=" + steps, "run.ranks=" + ranks};
  };
  auto whole = result(run("whole", with("20", "1")));
  run("run", with("9", "3"));
  auto resumed = result(run("run", with("20", "2"), true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
  expect_error([&] { run("run", {"train.steps=30"}, true); }, {"placement.initial"});
}

TEST_F(PlacedTraining, RejectsSettingsWithoutEffect) {
  for (std::string const& sampling : kSamplings) {
    EXPECT_EQ(config(settings(sampling, "0.5", "run.ranks=1")).settings<GraphSettings>().local_negatives, 0.5);
    expect_error([&] { config(settings(sampling, "0.5", "placement.initial=hash")); },
                 {"model.local_negatives", "placement.initial"});
  }
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
}  // namespace gpups::trainer::placed_training_test
