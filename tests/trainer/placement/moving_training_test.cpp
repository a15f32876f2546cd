// SPDX-License-Identifier: Apache-2.0
// Runs whose rows move have the bits of one rank, for each kind of data.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "tests/trainer/tasks/click/click_train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::trainer::moving_training_test {
namespace {

constexpr char const* kPolicies[] = {"adaptive", "relocate", "random"};

using MovingGraphs = TrainTest;

TEST_F(MovingGraphs, BitsAreIndependentOfPolicyAndRanks) {
  auto const alone = result(run("alone", {"run.ranks=1"}));
  for (std::string const policy : kPolicies) {
    for (std::string const ranks : {"2", "3"}) {
      auto const all = run(policy + ranks, {"run.ranks=" + ranks, "placement.policy=" + policy});
      EXPECT_EQ(result(all), alone);
      EXPECT_GT(all.at("moved_rows"), 0);
      EXPECT_GT(all.at("sent").at("moves"), 0);
    }
  }
}

TEST_F(MovingGraphs, ResumedRunEqualsUninterruptedRun) {
  auto whole = result(run("whole", {"train.steps=20", "placement.policy=adaptive", "run.ranks=2"}));
  run("run", {"train.steps=9", "placement.policy=adaptive", "run.ranks=3"});
  auto resumed = result(run("run", {"train.steps=20", "placement.policy=random", "run.ranks=2"}, true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
}

TEST_F(MovingGraphs, StalenessSendsLessAndLearns) {
  auto const with = [&](std::string const& staleness) {
    return run("staleness" + staleness,
               {"train.epochs=10", "run.ranks=2", "placement.replica_fraction=1", "placement.staleness=" + staleness});
  };
  auto const sync = with("0"), stale = with("3");
  EXPECT_EQ(sync.at("leased_keys"), 0);
  EXPECT_GT(stale.at("leased_keys"), 0);
  EXPECT_LT(stale.at("sent").at("refreshes").get<double>(), .7 * sync.at("sent").at("refreshes").get<double>());
  auto const first_loss = lines("staleness3", "loss").front().at("loss").get<double>();
  EXPECT_LT(stale.at("loss").get<double>(), first_loss);
  EXPECT_NE(stale.at("table_hash"), sync.at("table_hash"));
  EXPECT_EQ(stale.at("remote_home_keys"), sync.at("remote_home_keys")) << "the batches are the same";
}

// By default rows move between hosts only.
TEST_F(MovingGraphs, DefaultPolicyDependsOnHosts) {
  auto const alone = result(run("alone", {"run.ranks=1"}));
  auto const one_host = run("one", {"run.ranks=4"}),
             two_hosts = run("two", {"run.ranks=4", "placement.ranks_per_host=2"});
  EXPECT_EQ(one_host.at("moved_rows"), 0);
  EXPECT_GT(two_hosts.at("moved_rows"), 0);
  EXPECT_EQ(result(one_host), alone);
  EXPECT_EQ(result(two_hosts), alone);
}

// All batches are announced in time, so lossy results depend on the policy alone.
TEST_F(MovingGraphs, CompressedRowsMoveWithTheSameBitsInEachRun) {
  for (std::string const compression :
       {"gradient_compression.codec=int8", "refresh_compression.codec=float16", "refresh_compression.age_max=5"}) {
    auto const with = [&](std::string const& name) {
      return run(name + compression, {"run.ranks=3", "placement.policy=adaptive", compression});
    };
    auto const one = with("one"), other = with("other");
    EXPECT_GT(one.at("moved_rows"), 0);
    EXPECT_EQ(one.at("late_batches"), 0);
    EXPECT_EQ(one.at("table_hash"), other.at("table_hash")) << compression;
  }
}

// A signal interrupts the run again and again, as soon as it has made a step.
class InterruptedGraphs : public MovingGraphs, public testing::WithParamInterface<char const*> {};

TEST_P(InterruptedGraphs, CompressedRowsMoveWithTheSameBits) {
  Settings const settings{"run.ranks=3",
                          "placement.policy=adaptive",
                          std::string("placement.initial=") + GetParam(),
                          "gradient_compression.codec=int8",
                          "gradient_compression.age_max=5",
                          "train.steps=20",
                          "train.microbatches=8"};
  auto const whole = run("whole", settings);
  Config const c = config(settings);
  auto const data = read_data(c);
  data->placement(c, 8);  // once, because a signal would interrupt it
  constexpr int kInterruptions = 4;
  for (int i = 0; i < kInterruptions; ++i) {
    StopSignals const signals;
    std::raise(SIGTERM);
    run_ranks(Group::threads(3), [&](Group group) {
      EXPECT_FALSE(train(c, *data, group, {.folder = folder_.path() / "run", .resume = i > 0}));
    });
  }
  auto const resumed = run("run", settings, true);
  EXPECT_GT(resumed.at("moved_rows"), 0);
  EXPECT_EQ(resumed.at("late_batches"), 0);
  EXPECT_EQ(resumed.at("finished"), true);
  EXPECT_EQ(resumed.at("table_hash"), whole.at("table_hash"));
}

INSTANTIATE_TEST_SUITE_P(Placements, InterruptedGraphs, testing::Values("hash", "graph"),
                         [](auto const& test) { return std::string(test.param); });

TEST_F(ClickTrainTest, BitsAreIndependentOfPolicy) {
  Settings const settings = small("dlrm", {"model.admission_count=2"});
  auto const with = [&](std::string const& name, Settings more) {
    more.insert(more.begin(), settings.begin(), settings.end());
    return run(name, more);
  };
  auto const alone = with("alone", {"run.ranks=1"});
  for (std::string const policy : kPolicies) {
    // On one host, keys take more than the narrow rows.
    auto const all = with(policy, {"run.ranks=3", "placement.policy=" + policy, "placement.ranks_per_host=1"});
    EXPECT_EQ(all.at("table_hash"), alone.at("table_hash"));
    EXPECT_EQ(all.at("dense_hash"), alone.at("dense_hash"));
    EXPECT_GT(all.at("moved_rows"), 0);
  }
}

}  // namespace
}  // namespace gpups::trainer::moving_training_test
