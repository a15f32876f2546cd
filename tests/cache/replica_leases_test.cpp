// SPDX-License-Identifier: Apache-2.0
// Which uses of a row are leased, and when its gradients are due.
#include "cache/placement/replica_leases.hpp"

#include <gtest/gtest.h>

namespace gpups::cache::replica_leases_test {
namespace {

constexpr std::int64_t kStaleness = 3;
constexpr std::size_t kMany = 1000;

class PlannedSteps {
 public:
  // Plans a batch. Returns the uses of the keys, as letters: r, R (with a lease) or l.
  std::string plan(std::int64_t step, std::vector<std::uint64_t> const& numbers, std::size_t leases_max = kMany,
                   bool refresh_all = false) {
    std::vector<Key> keys;
    for (auto const number : numbers) keys.push_back(Key{number});
    occurrences.assign(keys.size(), 1);
    std::string letters;
    for (auto const use : leases.plan(View<Key const>(keys), occurrences, Clock{step}, leases_max, refresh_all)) {
      letters += use == ReplicaUse::kLeased ? 'l' : use == ReplicaUse::kRefresh ? 'r' : 'R';
    }
    return letters;
  }
  std::vector<std::uint64_t> due(std::int64_t step, bool all = false) {
    std::vector<std::uint64_t> keys;
    due_occurrences.clear();
    for (auto const& row : leases.take_due(Clock{step}, all, kMany)) {
      keys.push_back(number(row.key));
      due_occurrences.push_back(row.occurrences);
    }
    return keys;
  }

  ReplicaLeases leases{kStaleness};
  std::vector<std::uint32_t> occurrences, due_occurrences;
};

using Keys = std::vector<std::uint64_t>;

TEST(ReplicaLeases, LastAsManyStepsAsTheStaleness) {
  PlannedSteps steps;
  std::string uses;
  for (std::int64_t step = 0; step < 9; ++step) {
    uses += steps.plan(step, {7});
    EXPECT_EQ(steps.due(step), Keys{}) << "the batch refreshes the row itself";
  }
  EXPECT_EQ(uses, "RlllRlllR");
  EXPECT_EQ(steps.leases.counts().reads, 6U);
  EXPECT_EQ(steps.leases.counts().age, 12U);
  EXPECT_EQ(steps.leases.counts().age_max, 3U);
}

TEST(ReplicaLeases, GradientsAreDueAfterTheLease) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(0, {1, 2}), "RR");
  EXPECT_EQ(steps.plan(2, {1}), "l");
  EXPECT_EQ(steps.due(3), Keys{});
  EXPECT_EQ(steps.due(4), Keys{1}) << "of row 2, nothing waits";
  EXPECT_EQ(steps.due_occurrences, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(steps.plan(5, {1, 2}), "lR") << "the due refresh began a lease";
}

TEST(ReplicaLeases, AreKnownUntilTheirLastStepIsComplete) {
  PlannedSteps steps;
  auto const leased_at = [&](std::int64_t step) {
    return steps.leases.leased_at(View<Key const>(std::vector{Key{1}, Key{2}}), Clock{step});
  };
  using Places = std::vector<std::uint32_t>;
  EXPECT_EQ(steps.plan(0, {1, 2}), "RR");
  EXPECT_EQ(steps.due(9), Keys{}) << "both leases have ended in the plan";
  steps.leases.complete(Clock{2});
  EXPECT_EQ(leased_at(3), (Places{0, 1}));
  EXPECT_EQ(steps.plan(9, {1}, 0), "r") << "has no new lease";
  EXPECT_EQ(leased_at(3), (Places{0, 1}));
  EXPECT_EQ(steps.leases.rows(), 2U);
  steps.leases.complete(Clock{3});
  EXPECT_EQ(leased_at(4), Places{});
  EXPECT_EQ(steps.leases.rows(), 1U) << "row 1 is in the plan";
  EXPECT_EQ(steps.due(20), Keys{});
  steps.leases.complete(Clock{20});
  EXPECT_EQ(steps.leases.rows(), 0U);
}

TEST(ReplicaLeases, EndOfALeaseDoesNotMoveBack) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(7, {1}), "R") << "until step 10";
  EXPECT_EQ(steps.plan(9, {1}), "l");
  EXPECT_EQ(steps.plan(11, {1}), "R");
  EXPECT_EQ(steps.due(20), Keys{}) << "the row has left the plan";
  EXPECT_EQ(steps.plan(4, {1}), "R") << "a batch that was planned late";
  for (std::int64_t step = 3; step < 10; ++step) steps.leases.complete(Clock{step});
  EXPECT_EQ(steps.leases.leased_at(View<Key const>(std::vector{Key{1}}), Clock{10}), (std::vector<std::uint32_t>{0}));
}

TEST(ReplicaLeases, WaitingRowsAreDueInTheOrderOfTheirKeys) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(0, {5, 2, 9}), "RRR");
  EXPECT_EQ(steps.plan(1, {9, 5, 2}), "lll");
  steps.leases.clear();
  EXPECT_EQ(steps.due(2), (Keys{2, 5, 9}));
}

TEST(ReplicaLeases, OccurrencesAreCountedWithTheNextRefresh) {
  PlannedSteps steps;
  for (std::int64_t step = 0; step < 4; ++step) steps.plan(step, {1});
  EXPECT_EQ(steps.plan(4, {1}), "R");
  EXPECT_EQ(steps.occurrences, (std::vector<std::uint32_t>{4}));
}

TEST(ReplicaLeases, BatchesMayBePlannedInAnotherOrder) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(5, {1}), "R");
  EXPECT_EQ(steps.plan(4, {1}), "r");
  EXPECT_EQ(steps.plan(6, {1}), "l");
  EXPECT_EQ(steps.due(9), Keys{1});
}

TEST(ReplicaLeases, GradientsOfLaterUsesStayDueIfAnEarlierStepSendsAll) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(5, {1}), "R");
  EXPECT_EQ(steps.plan(6, {1}), "l");
  EXPECT_EQ(steps.due(3, true), Keys{1}) << "it may have sums of steps before 3";
  EXPECT_EQ(steps.due_occurrences, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(steps.due(9), Keys{1}) << "those of step 6";
  EXPECT_EQ(steps.due_occurrences, (std::vector<std::uint32_t>{1}));
}

TEST(ReplicaLeases, KeepToTheirLimit) {
  PlannedSteps steps;
  EXPECT_EQ(steps.plan(0, {1, 2, 3, 4, 5}, 4), "RRRrr") << "a quarter is for rows that are used again";
  EXPECT_EQ(steps.plan(1, {5, 4}, 4), "Rr");
  EXPECT_EQ(steps.plan(4, {6, 5}, 4), "rl");
  steps.due(4);
  EXPECT_EQ(steps.plan(4, {7}, 4), "R") << "three leases have ended";
}

TEST(ReplicaLeases, SynchronizedBatchRefreshesAllAndLeavesNothingWaiting) {
  PlannedSteps steps;
  steps.plan(0, {1, 2});
  steps.plan(1, {1, 2});
  EXPECT_EQ(steps.plan(2, {1}, kMany, true), "R");
  EXPECT_EQ(steps.due(2, true), Keys{2});
  EXPECT_EQ(steps.due(6, true), Keys{});
}

TEST(ReplicaLeases, GradientsOfOwnedRowsAreNotDue) {
  PlannedSteps steps;
  steps.plan(0, {1, 2});
  steps.plan(1, {1, 2});
  steps.plan(2, {2});
  std::vector<Key> const owned{Key{1}, Key{2}, Key{3}};
  std::vector<std::uint32_t> const entries{1, 1, 1};
  steps.leases.record_applied(View<Key const>(owned), entries, Clock{1});
  EXPECT_EQ(steps.due(4), Keys{2}) << "the use in step 2";
  EXPECT_EQ(steps.due_occurrences, (std::vector<std::uint32_t>{1}));
}

TEST(ReplicaLeases, EndWhenRowsChange) {
  PlannedSteps steps;
  steps.plan(0, {1, 2, 3});
  steps.plan(1, {1, 2});
  steps.leases.clear();
  steps.leases.drop({Key{2}});
  EXPECT_EQ(steps.plan(2, {3}), "R");
  EXPECT_EQ(steps.due(2), Keys{1});
  EXPECT_EQ(steps.due_occurrences, (std::vector<std::uint32_t>{1}));
  steps.leases.retry({Key{1}, Key{3}});
  EXPECT_EQ(steps.due(3), (Keys{1, 3})) << "the step was rejected";
}

}  // namespace
}  // namespace gpups::cache::replica_leases_test
