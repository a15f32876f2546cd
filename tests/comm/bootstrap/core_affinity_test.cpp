// SPDX-License-Identifier: Apache-2.0
// Which cores ranks get, and that threads stay on them.
#include "comm/bootstrap/core_affinity.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "kernels/runtime/arena.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::comm::core_affinity_test {
namespace {

using Cores = std::vector<int>;
using Sets = std::vector<Cores>;

Cores range(int first, int last) {
  Cores cores(static_cast<std::size_t>(last - first + 1));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

// Returns the shares of ranks that have the same allowed cores and no devices.
Sets share(int ranks, Cores const& all) {
  auto const n = static_cast<std::size_t>(ranks);
  return partition_cores(Sets(n, all), Sets(n));
}

TEST(CoreList, RoundTripKeepsText) {
  for (char const* text : {"", "0", "7", "0-3", "0-3,8", "0,2,4-5,65535"})
    EXPECT_EQ(format_core_list(parse_core_list(text)), text);
}

TEST(CoreList, RemovesDuplicates) {
  std::string text = "5";
  for (int i = 0; i < 100000; ++i) text += ",0-65535";
  EXPECT_EQ(parse_core_list(text).size(), 65536U);
}

TEST(CoreList, SortsCores) {
  EXPECT_EQ(parse_core_list("8,0-3"), (Cores{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_core_list("1,0-2"), (Cores{0, 1, 2}));
  EXPECT_EQ(format_core_list({5, 0, 1, 5, 4}), "0-1,4-5");
}

TEST(CoreList, ParsesLinuxFiles) {
  EXPECT_EQ(parse_core_list("0-1,4\n"), (Cores{0, 1, 4}));
  EXPECT_EQ(parse_core_list("\n"), Cores{});
}

TEST(CoreList, RejectsOtherText) {
  for (char const* text : {"a", "1,", ",1", "1,,2", "-1", "1-", "3-1", "1-2-3", "0x1", "0 1", "99999999999", "65536"}) {
    test::expect_error([&] { parse_core_list(text); }, {text, "not a list of cores", "0-3,8"});
  }
}

TEST(PartitionCores, SplitsEvenlyIfUnbound) {
  EXPECT_EQ(share(2, range(0, 7)), (Sets{range(0, 3), range(4, 7)}));
  EXPECT_EQ(share(4, range(0, 7)), (Sets{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(share(3, {10, 20, 30}), (Sets{{10}, {20}, {30}}));
}

TEST(PartitionCores, SharesDifferByAtMostOneCore) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int last = ranks - 1; last <= 20; ++last) {
      Sets const shares = share(ranks, range(0, last));
      Cores together;
      std::size_t least = 1000, most = 0;
      for (Cores const& one : shares) {
        together.insert(together.end(), one.begin(), one.end());
        least = std::min(least, one.size());
        most = std::max(most, one.size());
      }
      EXPECT_EQ(together, range(0, last)) << ranks;  // contiguous, in rank order, every core once
      EXPECT_LE(most - least, 1U) << ranks;
    }
  }
}

TEST(PartitionCores, FewerCoresThanRanksAreShared) {
  EXPECT_EQ(share(3, {0, 1}), Sets(3, Cores{0, 1}));
  EXPECT_EQ(share(2, {5}), Sets(2, Cores{5}));
}

TEST(PartitionCores, SingleRankKeepsAllCores) {
  EXPECT_EQ(share(1, range(0, 3)), Sets{range(0, 3)});
  EXPECT_EQ(partition_cores({range(0, 3)}, {{2, 3}}), Sets{range(0, 3)});
  EXPECT_EQ(partition_cores({}, {}), Sets{});
}

TEST(PartitionCores, KeepsBindingOfLauncher) {
  Sets const bound{{4, 5}, {0, 1}, {2, 3}};
  EXPECT_EQ(partition_cores(bound, Sets(3)), bound);
  EXPECT_EQ(partition_cores(bound, Sets(3, Cores{0, 1})), bound);  // even if the device is far from them
}

TEST(PartitionCores, SplitsEachGroupSeparately) {
  Sets const allowed{range(0, 3), range(4, 7), range(0, 3), range(4, 7)};
  EXPECT_EQ(partition_cores(allowed, Sets(4)), (Sets{{0, 1}, {4, 5}, {2, 3}, {6, 7}}));
}

TEST(PartitionCores, ComparesSetsInAnyOrder) {
  EXPECT_EQ(partition_cores({{0, 2, 1, 3}, {3, 2, 1, 0}}, Sets(2)), (Sets{{0, 2}, {1, 3}}));
}

TEST(PartitionCores, KeepsOverlappingSets) {
  Sets const allowed{range(0, 3), range(2, 5)};
  EXPECT_EQ(partition_cores(allowed, Sets(2)), allowed);
}

TEST(PartitionCores, KeepsHardwareThreadsTogether) {
  Cores const pairs{0, 4, 1, 5, 2, 6, 3, 7};  // 0 and 4 are threads of one core, in the order of order_by_locality()
  EXPECT_EQ(share(4, pairs), (Sets{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(share(2, pairs), (Sets{{0, 4, 1, 5}, {2, 6, 3, 7}}));
}

TEST(PartitionCores, PrefersCoresNearDevice) {
  // The devices of ranks 0 and 1 are near the second half.
  Sets const near{range(4, 7), range(4, 7), range(0, 3), range(0, 3)};
  EXPECT_EQ(partition_cores(Sets(4, range(0, 7)), near), (Sets{{4, 5}, {6, 7}, {0, 1}, {2, 3}}));
}

TEST(PartitionCores, RanksWithoutDeviceGetFarCores) {
  EXPECT_EQ(partition_cores(Sets(3, range(0, 7)), {{}, range(4, 7), {}}), (Sets{{0, 1}, range(4, 7), {2, 3}}));
}

TEST(PartitionCores, TakesOnlyAllowedNearCores) {
  EXPECT_EQ(partition_cores(Sets(2, range(2, 5)), {range(4, 7), range(0, 3)}), (Sets{{4, 5}, {2, 3}}));
}

TEST(PartitionCores, IgnoresUselessLocality) {
  Sets const halves{range(0, 3), range(4, 7)};
  EXPECT_EQ(partition_cores(Sets(2, range(0, 7)), Sets(2, range(0, 7))), halves);
  EXPECT_EQ(partition_cores(Sets(2, range(0, 7)), Sets(2, range(100, 107))), halves);
  EXPECT_EQ(partition_cores(Sets(2, range(0, 7)), {range(0, 7), {}}), halves);  // nothing would be left for the second
}

TEST(PartitionCores, SplitsAllIfNearCoresAreTooFew) {
  // Three ranks are near core 0 alone. The first rank gets the last cores, which are near its device.
  Sets const near{range(6, 7), {0}, {0}, {0}};
  EXPECT_EQ(partition_cores(Sets(4, range(0, 7)), near), (Sets{{6, 7}, {0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(partition_cores(Sets(2, range(0, 7)), {range(3, 7), range(0, 3)}), (Sets{range(4, 7), range(0, 3)}));
}

TEST(OrderByLocality, DoesNotDependOnInputOrder) {
  Cores const cores = allowed_cores();
  Cores const backwards(cores.rbegin(), cores.rend());
  Cores ordered = order_by_locality(cores);
  EXPECT_EQ(order_by_locality(backwards), ordered);
  std::sort(ordered.begin(), ordered.end());
  EXPECT_EQ(ordered, cores);
}

TEST(OrderByLocality, PutsUnknownCoresLast) {
  int const known = allowed_cores().front();
  EXPECT_EQ(order_by_locality({60001, known, 60000}), (Cores{known, 60000, 60001}));
  EXPECT_EQ(order_by_locality({}), Cores{});
}

TEST(BindToCores, AppliesToThreadAndItsChildren) {
  Cores const before = allowed_cores();
  ASSERT_FALSE(before.empty());
  Cores const last{before.back()};
  Cores bound, inherited;
  std::thread([&] {
    bind_to_cores(last);
    bound = allowed_cores();
    std::thread([&] { inherited = allowed_cores(); }).join();
  }).join();
  EXPECT_EQ(bound, last);
  EXPECT_EQ(inherited, last);
  EXPECT_EQ(allowed_cores(), before);
}

TEST(BindToCores, RejectsMissingCores) {
  test::expect_error([] { bind_to_cores({65000}); }, {"65000", "let the launcher bind"});
}

TEST(BindToCores, ArenaGetsOneThreadPerCore) {
  int bound = 0;
  std::thread([&] {
    bind_to_cores({allowed_cores().front()});
    bound = kernels::Arena(0).threads();
  }).join();
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(kernels::Arena(0).threads(), static_cast<int>(allowed_cores().size()));
}

// Runs in a process of its own that binds itself before it starts threads, as ranks do when they join.
void count_blocks_elsewhere() {
  int const core = allowed_cores().back();
  bind_to_cores({core});
  std::atomic<int> elsewhere = 0;
  kernels::Arena(8).blocks(200, [&](std::size_t) {
    std::atomic<int> spins = 0;
    while (++spins < 20000) {  // long enough for other threads to take part, if there are any
    }
    elsewhere += sched_getcpu() != core;
  });
  std::exit(elsewhere == 0 ? 0 : 1);
}

TEST(BindToCoresDeathTest, AppliesToArenaThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(count_blocks_elsewhere(), testing::ExitedWithCode(0), "");
}

// A process sees all GPUs of the machine, or its own only; then it has a list of one.
TEST(CoresNearRank, IsTheDeviceOfTheRank) {
  EXPECT_EQ(cores_near_rank("0-3;4-7;8-11", 1), range(4, 7));
  EXPECT_EQ(cores_near_rank("0-3;4-7", 2), range(0, 3)) << "more ranks than devices";
  EXPECT_EQ(cores_near_rank("4-7", 5), range(4, 7));
  EXPECT_EQ(cores_near_rank("0-3;;8", 2), (Cores{8}));
  for (std::string const text : {"", ";", "many", "7-3"}) EXPECT_EQ(cores_near_rank(text, 1), Cores{}) << text;
}

}  // namespace
}  // namespace gpups::comm::core_affinity_test
