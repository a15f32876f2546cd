// SPDX-License-Identifier: Apache-2.0
// Which uses of a row are leased, and when its gradients are due.
#include "cache/placement/replica_leases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/hash.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::cache::replica_leases_test {
namespace {

constexpr std::int64_t kStaleness = 3;
constexpr std::size_t kMany = 1000;

using Keys = std::vector<std::uint64_t>;
using Counts = std::vector<std::uint32_t>;

std::vector<Key> keys_of(Keys const& numbers) {
  std::vector<Key> keys;
  for (auto const number : numbers) keys.push_back(Key{number});
  return keys;
}

// One table, with rows that another rank owns.
class PlannedSteps {
 public:
  explicit PlannedSteps(Device device)
      : stream(device, 1), leases(device, 1, kStaleness, 1, Rank{0}), device_(device) {}

  struct Plan {
    std::string uses;             // of each key, as letters: r, R (a lease begins) or l (leased)
    Keys due;                     // rows that the batch announces although it does not use them
    Counts occurrences, entries;  // of announced rows in the order of the keys; of leased rows
    Counts due_occurrences;
    bool operator==(Plan const&) const = default;
  };
  struct Options {
    std::size_t leases_max = kMany;
    bool refresh_all = false, send_all = false;
  };

  // Plans a batch with parts that have these keys, with one entry each.
  Plan divide(std::int64_t step, std::vector<Keys> const& parts, Options const& options) {
    std::vector<Array<Key>> keys;
    std::vector<Array<std::uint32_t>> offsets;
    std::vector<std::vector<std::uint32_t>> homes;
    std::vector<UndividedPart> undivided(parts.size());
    for (auto const& numbers : parts) {
      keys.push_back(to_device(stream, keys_of(numbers)));
      std::vector<std::uint32_t> ascending(numbers.size() + 1);
      std::iota(ascending.begin(), ascending.end(), 0);
      offsets.push_back(to_device(stream, ascending));
      homes.push_back({0, static_cast<std::uint32_t>(numbers.size())});
    }
    for (std::size_t p = 0; p < parts.size(); ++p) undivided[p] = {TableId{0}, keys[p], homes[p], offsets[p], {}};
    auto const divided = leases.wait_divide(stream, undivided,
                                            {.step = Clock{step},
                                             .leases_max = {&options.leases_max, 1},
                                             .plans_own = true,
                                             .refresh_all = options.refresh_all,
                                             .send_all = options.send_all});
    return read(parts, divided);
  }
  Plan divide(std::int64_t step, Keys const& numbers, Options const& options) {
    return divide(step, std::vector<Keys>{numbers}, options);
  }
  // The uses and the keys of rows that are due, as in "Rl 7".
  std::string plan(std::int64_t step, Keys const& numbers, std::size_t leases_max = kMany) {
    return text(divide(step, numbers, {.leases_max = leases_max}));
  }
  static std::string text(Plan const& plan) {
    std::string all = plan.uses;
    for (auto const key : plan.due) all += " " + std::to_string(key);
    return all;
  }

  std::vector<std::size_t> leased_at(std::int64_t step, Keys const& numbers) {
    auto const keys = to_device(stream, keys_of(numbers));
    std::vector<std::uint32_t> rows(numbers.size());
    std::iota(rows.begin(), rows.end(), 0);
    auto const there = to_device(stream, rows);
    Array<std::uint32_t> const pinned(device_, rows.size());
    ReplicaLeases::KeyedRows const list{TableId{0}, keys, there, pinned};
    leases.select_leased(stream, {&list, 1}, Clock{step});
    std::vector<std::size_t> places;
    for (auto const row : to_host(stream, pinned.view())) {
      if (row != kernels::kNoRow) places.push_back(row);
    }
    return places;
  }
  void retry(Keys const& numbers) {
    auto const keys = to_device(stream, keys_of(numbers));
    ReplicaLeases::KeysOfTable const list{TableId{0}, keys};
    leases.retry(stream, {&list, 1});
  }
  void drop(Keys const& numbers) { leases.drop(stream, {TableId{0}, to_device(stream, keys_of(numbers))}); }
  std::size_t rows() const { return leases.rows(TableId{0}); }

  Stream stream;
  ReplicaLeases leases;

 private:
  Plan read(std::vector<Keys> const& parts, DividedRows const& divided) {
    Plan plan;
    auto const begun = to_host(stream, divided.tables[0].begun);
    auto const announced_keys = to_host(stream, divided.keys.view());
    auto const offsets = to_host(stream, divided.offsets.view());
    EXPECT_EQ(divided.tables[0].homes, (Counts{0, static_cast<std::uint32_t>(announced_keys.size())}));
    std::vector<bool> used(announced_keys.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& part = divided.parts[p];
      std::string uses(parts[p].size(), '?');
      Counts occurrences(parts[p].size());
      auto const rows = to_host(stream, part.whole_rows), places = to_host(stream, part.announced_rows);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        uses[rows[i]] = std::find(begun.begin(), begun.end(), places[i]) == begun.end() ? 'r' : 'R';
        EXPECT_EQ(announced_keys[places[i]], Key{parts[p][rows[i]]});
        used[places[i]] = true;
        occurrences[rows[i]] = offsets[places[i] + 1] - offsets[places[i]];
      }
      auto const leased = to_host(stream, part.leased_rows);
      auto const entries = to_host(stream, part.entries);
      auto const keys = to_host(stream, part.leased_keys);
      for (std::size_t i = 0; i < leased.size(); ++i) {
        uses[leased[i]] = 'l';
        EXPECT_EQ(keys[i], Key{parts[p][leased[i]]});
        plan.entries.push_back(entries[i]);
      }
      plan.uses += uses;
      plan.occurrences.insert(plan.occurrences.end(), occurrences.begin(), occurrences.end());
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> due;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) due.emplace_back(number(announced_keys[i]), offsets[i + 1] - offsets[i]);
    }
    std::sort(due.begin(), due.end());
    for (auto const& [key, occurrences] : due) {
      plan.due.push_back(key);
      plan.due_occurrences.push_back(occurrences);
    }
    return plan;
  }

  Device device_;
};

class ReplicaLeasesOn : public test::OnDevice {
 protected:
  PlannedSteps steps{GetParam().is_host() || cuda_device_count() > 0 ? GetParam() : Device::host()};
};

TEST_P(ReplicaLeasesOn, LastAsManyStepsAsTheStaleness) {
  std::string uses;
  for (std::int64_t step = 0; step < 9; ++step) uses += steps.plan(step, {7});
  EXPECT_EQ(uses, "RlllRlllR") << "no row is due, because the batch refreshes it itself";
  EXPECT_EQ(steps.leases.counts().reads, 6U);
  EXPECT_EQ(steps.leases.counts().age, 12U);
  EXPECT_EQ(steps.leases.counts().age_max, 3U);
}

TEST_P(ReplicaLeasesOn, GradientsAreDueAfterTheLease) {
  EXPECT_EQ(steps.plan(0, {1, 2}), "RR");
  EXPECT_EQ(steps.plan(2, {1}), "l");
  EXPECT_EQ(steps.plan(3, {}), "");
  auto const plan = steps.divide(4, Keys{}, {});
  EXPECT_EQ(plan.due, Keys{1}) << "of row 2, nothing waits";
  EXPECT_EQ(plan.due_occurrences, Counts{1});
  EXPECT_EQ(steps.plan(5, {1, 2}), "lR") << "the due refresh began a lease";
}

TEST_P(ReplicaLeasesOn, AreKnownUntilTheirLastStepIsComplete) {
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(steps.plan(0, {1, 2}), "RR");
  EXPECT_EQ(steps.plan(9, {}), "") << "both leases have ended in the plan";
  steps.leases.complete(Clock{2});
  EXPECT_EQ(steps.leased_at(3, {1, 2}), (Places{0, 1}));
  EXPECT_EQ(steps.plan(9, {1}, 0), "r") << "has no new lease";
  EXPECT_EQ(steps.leased_at(3, {1, 2}), (Places{0, 1}));
  EXPECT_EQ(steps.rows(), 2U);
  steps.leases.complete(Clock{3});
  EXPECT_EQ(steps.plan(9, {}), "");
  EXPECT_EQ(steps.leased_at(4, {1, 2}), Places{});
  EXPECT_EQ(steps.rows(), 1U) << "row 1 is in the plan";
  EXPECT_EQ(steps.plan(20, {}), "");
  EXPECT_EQ(steps.rows(), 1U) << "its step is not complete";
  steps.leases.complete(Clock{20});
  EXPECT_EQ(steps.plan(21, {3}), "R");
  EXPECT_EQ(steps.rows(), 1U) << "row 3 has the number of an earlier one";
}

TEST_P(ReplicaLeasesOn, EndOfALeaseDoesNotMoveBack) {
  EXPECT_EQ(steps.plan(7, {1}), "R") << "until step 10";
  EXPECT_EQ(steps.plan(9, {1}), "l");
  EXPECT_EQ(steps.plan(11, {1}), "R");
  EXPECT_EQ(steps.plan(20, {}), "") << "the row has left the plan";
  EXPECT_EQ(steps.plan(4, {1}), "R") << "a batch that was planned late";
  for (std::int64_t step = 3; step < 10; ++step) steps.leases.complete(Clock{step});
  EXPECT_EQ(steps.leased_at(10, {1}), std::vector<std::size_t>{0});
}

TEST_P(ReplicaLeasesOn, OccurrencesAreCountedWithTheNextRefresh) {
  for (std::int64_t step = 0; step < 4; ++step) steps.plan(step, {1});
  auto const plan = steps.divide(4, Keys{1}, {});
  EXPECT_EQ(plan.uses, "R");
  EXPECT_EQ(plan.occurrences, Counts{4});
}

TEST_P(ReplicaLeasesOn, BatchesMayBePlannedInAnotherOrder) {
  EXPECT_EQ(steps.plan(5, {1}), "R");
  EXPECT_EQ(steps.plan(4, {1}), "r");
  EXPECT_EQ(steps.plan(6, {1}), "l");
  EXPECT_EQ(steps.plan(9, {}), " 1");
}

TEST_P(ReplicaLeasesOn, GradientsOfLaterUsesStayDueIfAnEarlierStepSendsAll) {
  EXPECT_EQ(steps.plan(5, {1}), "R");
  EXPECT_EQ(steps.plan(6, {1}), "l");
  auto plan = steps.divide(3, Keys{}, {.send_all = true});
  EXPECT_EQ(plan.due, Keys{1}) << "it may have sums of steps before 3";
  EXPECT_EQ(plan.due_occurrences, Counts{0});
  plan = steps.divide(9, Keys{}, {});
  EXPECT_EQ(plan.due, Keys{1}) << "those of step 6";
  EXPECT_EQ(plan.due_occurrences, Counts{1});
}

// The batch of step 3 is planned last, because step 1 was rejected or because it sends everything.
TEST_P(ReplicaLeasesOn, GradientsOfLaterUsesStayDueIfAnEarlierBatchRefreshesTheRow) {
  EXPECT_EQ(steps.plan(1, {7, 8}), "RR");
  EXPECT_EQ(steps.plan(4, {7, 8}), "ll");
  steps.retry({7});
  EXPECT_EQ(steps.text(steps.divide(3, Keys{7}, {.refresh_all = true, .send_all = true})), "R 8");
  EXPECT_EQ(steps.plan(8, {}), " 7 8") << "those of step 4";
  EXPECT_EQ(steps.plan(20, {}), "");
}

TEST_P(ReplicaLeasesOn, KeepToTheirLimit) {
  EXPECT_EQ(steps.plan(0, {1, 2, 3, 4, 5}, 4), "RRRrr") << "a quarter is for rows that are used again";
  EXPECT_EQ(steps.plan(1, {6, 5, 4}, 4), "rRr") << "rows that are known come first";
  EXPECT_EQ(steps.leases.leases(TableId{0}), 4U);
  EXPECT_EQ(steps.plan(2, {1, 2, 3}, 4), "lll");
  EXPECT_EQ(steps.plan(4, {7, 5, 3}, 4), "rlR 1 2") << "leases are renewed first";
  EXPECT_EQ(steps.leases.leases(TableId{0}), 4U);
  EXPECT_EQ(steps.plan(5, {}, 4), " 5");
  EXPECT_EQ(steps.plan(8, {}, 4), "");
  EXPECT_EQ(steps.leases.leases(TableId{0}), 1U);
}

// The order of records depends on when steps were complete.
TEST_P(ReplicaLeasesOn, DueRowsGetLeasesInTheOrderOfTheirKeys) {
  EXPECT_EQ(steps.plan(0, {5, 2, 9}), "RRR");
  EXPECT_EQ(steps.plan(1, {9, 5, 2}), "lll");
  steps.leases.clear(steps.stream);
  EXPECT_EQ(steps.plan(2, {}, 2), " 2 5 9");
  EXPECT_EQ(steps.plan(3, {9, 5, 2}, 2), "rll");
}

TEST_P(ReplicaLeasesOn, RowOfSeveralPartsIsAnnouncedOnce) {
  auto plan = steps.divide(0, std::vector<Keys>{{1, 2}, {3, 2}, {2}}, {});
  EXPECT_EQ(plan.uses, "RRRRR");
  EXPECT_EQ(plan.occurrences, (Counts{1, 3, 1, 3, 3}));
  EXPECT_EQ(plan.due, Keys{});
  plan = steps.divide(1, std::vector<Keys>{{4, 2}, {3, 2}, {4}}, {});
  EXPECT_EQ(plan.uses, "RlllR");
  EXPECT_EQ(plan.occurrences, (Counts{2, 0, 0, 0, 2}));
  EXPECT_EQ(plan.entries, (Counts{1, 1, 1}));
  plan = steps.divide(4, Keys{2}, {});
  EXPECT_EQ(plan.occurrences, Counts{3}) << "its own, and two of the leased uses";
  EXPECT_EQ(plan.due, Keys{3});
}

TEST_P(ReplicaLeasesOn, SynchronizedBatchRefreshesAllAndLeavesNothingWaiting) {
  steps.plan(0, {1, 2});
  steps.plan(1, {1, 2});
  EXPECT_EQ(steps.text(steps.divide(2, Keys{1}, {.refresh_all = true, .send_all = true})), "R 2");
  EXPECT_EQ(steps.text(steps.divide(6, Keys{}, {.refresh_all = true, .send_all = true})), "");
}

TEST_P(ReplicaLeasesOn, GradientsOfOwnedRowsAreNotDue) {
  steps.plan(0, {1, 2});
  std::vector<Key> const keys = keys_of({1, 2});
  auto const there = to_device(steps.stream, keys);
  std::vector<std::uint32_t> const homes{0, 2}, offsets{0, 1, 2};
  auto const offsets_there = to_device(steps.stream, offsets);
  UndividedPart const part{TableId{0}, there, homes, offsets_there, {}};
  auto const divided = steps.leases.wait_divide(steps.stream, {&part, 1},
                                                {.step = Clock{1}, .leases_max = {&kMany, 1}, .plans_own = true});
  EXPECT_EQ(steps.plan(2, {2}), "l");
  auto const items = to_device(steps.stream, Counts{0, 1});
  ReplicaLeases::AppliedRows const applied{TableId{0}, divided.leased_records, divided.leased_entries, items};
  steps.leases.count_applied(steps.stream, {&applied, 1}, Clock{1});
  auto const plan = steps.divide(4, Keys{}, {});
  EXPECT_EQ(plan.due, Keys{2}) << "the use in step 2";
  EXPECT_EQ(plan.due_occurrences, Counts{1});
}

TEST_P(ReplicaLeasesOn, EndWhenRowsChange) {
  steps.plan(0, {1, 2, 3});
  steps.plan(1, {1, 2});
  steps.leases.clear(steps.stream);
  steps.drop({2});
  auto const plan = steps.divide(2, Keys{3}, {});
  EXPECT_EQ(steps.text(plan), "R 1");
  EXPECT_EQ(plan.due_occurrences, Counts{1});
  steps.retry({1, 3, 99});
  EXPECT_EQ(steps.plan(3, {}), " 1 3") << "the step was rejected";
  EXPECT_EQ(steps.plan(4, {3}), "l");
  steps.retry({3});
  EXPECT_EQ(steps.plan(5, {3}), "R") << "a row that is overdue is refreshed, though it has a lease";
}

// Homes, and rows that this rank owns.
TEST_P(ReplicaLeasesOn, RowsAtHomeGetNoLease) {
  constexpr int kRanks = 2;
  Stream& stream = steps.stream;
  ReplicaLeases leases(GetParam(), 1, kStaleness, kRanks, Rank{0});
  std::vector<Key> at_home, away;
  for (std::uint64_t k = 0; at_home.size() < 3 || away.size() < 3; ++k) {
    auto& keys = kernels::home_of(Key{k}, kRanks) == 0 ? at_home : away;
    if (keys.size() < 3) keys.push_back(Key{k});
  }
  std::vector<Key> all = at_home;
  all.insert(all.end(), away.begin(), away.end());
  auto const keys = to_device(stream, all);
  auto const owners = to_device(stream, Counts{0, 1, 0});  // the second one has another owner
  std::vector<std::uint32_t> const homes{0, 3, 6};
  auto const divide = [&](std::int64_t step, bool plans_own) {
    UndividedPart const part{TableId{0}, keys, homes, {}, plans_own ? owners.view() : View<std::uint32_t>{}};
    return leases.wait_divide(stream, {&part, 1},
                              {.step = Clock{step}, .leases_max = {&kMany, 1}, .plans_own = plans_own});
  };
  auto divided = divide(0, false);
  EXPECT_EQ(divided.tables[0].homes, (Counts{0, 3, 6}));
  EXPECT_EQ(divided.tables[0].begun.size(), 3U);
  EXPECT_EQ(leases.rows(TableId{0}), 3U) << "the other rows have no records";
  divided = divide(1, true);
  EXPECT_EQ(divided.tables[0].homes, (Counts{0, 3, 3}));
  EXPECT_EQ(to_host(stream, divided.tables[0].begun), Counts{1});
  EXPECT_EQ(to_host(stream, divided.parts[0].leased_rows), (Counts{3, 4, 5}));
  EXPECT_EQ(divided.parts[0].leased_elsewhere, 3U);
  divided = divide(2, true);
  EXPECT_EQ(divided.tables[0].homes, (Counts{0, 2, 2}));
  EXPECT_EQ(to_host(stream, divided.parts[0].leased_rows), (Counts{1, 3, 4, 5}));
  EXPECT_EQ(divided.parts[0].leased_elsewhere, 3U);
  divided = divide(4, true);
  EXPECT_EQ(divided.tables[0].homes, (Counts{0, 2, 5}));
  EXPECT_EQ(divided.due_elsewhere, 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplicaLeasesOn, test::kDevices, test::device_name);

}  // namespace
}  // namespace gpups::cache::replica_leases_test
