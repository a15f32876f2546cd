// SPDX-License-Identifier: Apache-2.0
// Allreduces of a group without a Store, over threads, a simulated network and processes; before, during and after a
// Store; and the device that they use.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/build_config.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/float_allreduce_workload.hpp"
#if GPUPS_HAS_UCX
#include "tests/support/rank_processes.hpp"
#endif

namespace gpups::test::group_allreduce_test {
namespace {

int rank_of(Group const& group) { return static_cast<int>(number(group.rank())); }

// Sums small and large arrays of integers, all in flight together. Each element is the sum of rank + 1 over the ranks.
void sum_integers(Group const& group) {
  Stream stream(Device::host(), 1);
  std::vector<std::vector<std::int64_t>> arrays;
  std::vector<CollectiveRequest> sums;
  for (std::size_t const n : {0, 1, 3, 5000, 100000}) arrays.emplace_back(n, rank_of(group) + 1);
  for (auto& values : arrays) sums.push_back(group.begin_allreduce(stream, values));
  for (auto const& sum : sums) group.wait_allreduce(stream, sum);
  std::int64_t const want = group.size() * (group.size() + 1) / 2;
  for (auto const& values : arrays) {
    bool const is_right = std::all_of(values.begin(), values.end(), [&](auto value) { return value == want; });
    if (!is_right) throw Error("an array of " + std::to_string(values.size()) + " has another sum");
  }
}

// Sums floats and sparse vectors by all algorithms, and largest elements.
void sum_by_all_algorithms(Group const& group) {
  Stream stream(Device::host(), 1);
  for (std::size_t const size : {0, 1, 20000}) FloatSums(group, stream, size).check_all();
  TopKAllreduce largest(group, 1000, {.density = 1, .algorithm = "sparse_allgather"});
  std::vector<float> gradient(1000, 1.0F), sums(1000);
  largest.begin(stream, View<float const>(gradient));
  largest.wait(stream, View<float>(sums));
  if (sums != std::vector<float>(1000, static_cast<float>(group.size()))) throw Error("the largest elements are wrong");
}

TEST(GroupAllreduce, NeedsNoStore) {
  for (int const ranks : {1, 2, 4}) {
    run_ranks(Group::threads(ranks), [](Group const& group) {
      sum_integers(group);
      sum_by_all_algorithms(group);
      EXPECT_EQ(group.explain_allreduces().empty(), group.size() == 1);
    });
  }
  sum_integers(Group::alone());
}

TEST(GroupAllreduce, NeedsNoStoreInSimulation) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    run_ranks(Group::simulated(3, {.seed = seed}), [](Group const& group) {
      sum_integers(group);
      sum_by_all_algorithms(group);
    });
  }
}

// A rank may sum before it has a Store while others have one, and after its Store has ended while others still have
// one.
TEST(GroupAllreduce, WorksBeforeDuringAndAfterStore) {
  auto const body = [](Group const& group) {
    Stream stream(Device::host(), 1);
    std::vector<std::int64_t> early(3000, rank_of(group)), late(3000, rank_of(group));
    sum_integers(group);
    auto const first = group.begin_allreduce(stream, early);
    CollectiveRequest second;
    {
      Store store(group, {.threads = 1});
      TableId const table = store.add_table({.name = "rows", .dim = 4});
      auto own = store.make_stream();
      for (int step = 0; step < 3; ++step) {
        Key const key{static_cast<std::uint64_t>(step)};
        Array<Key> const keys = to_device(own, std::vector{key, Key{100}});
        TableBatch const part{.table = table, .keys = keys};
        PreparedBatch const batch = store.prepare(own, store.clock(), {&part, 1}, 2);
        store.wait_ready(batch);
        Matrix<float> sources(Device::host(), 2, 4);
        memory::fill_bytes(own, sources.view().data(), 0, sources.view().flat().bytes());
        TableGradients const gradients{.sources = sources};
        store.push(own, batch, {&gradients, 1});
        sum_integers(group);
        store.advance_clock();
      }
      second = group.begin_allreduce(own, late);
      store.wait_barrier();
      auto const stats = store.stats();
      EXPECT_GT(stats.sent.allreduces, 0U);
    }
    group.wait_allreduce(stream, second);
    group.wait_allreduce(stream, first);
    EXPECT_EQ(early, std::vector<std::int64_t>(3000, group.size() * (group.size() - 1) / 2));
    EXPECT_EQ(early, late);
    sum_integers(group);
  };
  run_ranks(Group::threads(3), body);
  for (std::uint64_t seed = 0; seed < 20; ++seed) run_ranks(Group::simulated(3, {.seed = seed}), body);
}

// A rank completes sums that it does not wait for, for the other ranks, before it leaves.
TEST(GroupAllreduce, LeavingRankCompletesSumForOthers) {
  auto const body = [](Group const& group) {
    Stream stream(Device::host(), 1);
    std::vector<std::int64_t> values(50000, 1);
    auto const sum = group.begin_allreduce(stream, values);
    if (rank_of(group) == 1) return;
    group.wait_allreduce(stream, sum);
    EXPECT_EQ(values, std::vector<std::int64_t>(50000, 3));
  };
  run_ranks(Group::threads(3), body);
  for (std::uint64_t seed = 0; seed < 20; ++seed) run_ranks(Group::simulated(3, {.seed = seed}), body);
}

// Rank 1 leaves, and the others wait for a sum with it. Throws Error if they get no error that says so.
void lose_rank_one(Group const& group) {
  Stream stream(Device::host(), 1);
  std::vector<std::int64_t> values(50000, 1);
  if (rank_of(group) == 1) return sum_integers(group);
  try {
    sum_integers(group);
    group.wait_allreduce(stream, group.begin_allreduce(stream, values));
  } catch (PeerError const& error) {
    if (std::string(error.what()).find("rank 1 has left") != std::string::npos) return;
    throw Error(std::string("the error names no rank that has left: ") + error.what());
  }
  throw Error("a rank has left, and its sum is there");
}

TEST(GroupAllreduce, ErrorNamesRankThatLeft) {
  run_ranks(Group::threads(3), lose_rank_one);
  for (std::uint64_t seed = 0; seed < 50; ++seed) run_ranks(Group::simulated(3, {.seed = seed}), lose_rank_one);
}

TEST(GroupAllreduce, EndsWithRunRanks) {
  auto const groups = Group::threads(2);
  run_ranks(groups, sum_integers);
  Stream stream(Device::host(), 1);
  std::vector<std::int64_t> values(10, 1);
  expect_error([&] { groups[0].wait_allreduce(stream, groups[0].begin_allreduce(stream, values)); },
               {"rank 0 has left its group", "create another group"});
}

TEST(GroupAllreduce, RejectsSecondDevice) {
  Stream stream(Device::host(), 1);
  std::vector<std::int64_t> values(10, 1);
  View<std::int64_t> const elsewhere(values.data(), values.size(), Device::cuda(0));
  {
    auto const group = Group::alone();
    expect_error([&] { group.begin_allreduce(stream, elsewhere); },
                 {"begin_allreduce was given a stream on host and an array on cuda:0", "of one device"});
    sum_integers(group);
    expect_error([&] { group.begin_allreduce(stream, elsewhere); },
                 {"on cuda:0, but the first collective of this rank was on host", "use one device"});
    expect_error([&] { Store(group, {.device = Device::cuda(0), .threads = 1}); },
                 {"a Store on cuda:0", "the collectives of this rank are on host", "device of the first collective"});
    expect_error([&] { group.wait_connect_devices(Device::host()); },
                 {"after a collective was started", "call it before the first collective"});
    Store const store(group, {.threads = 1});  // the errors have not changed the group
  }
  auto const group = Group::alone();
  group.wait_connect_devices(Device::cuda(0));
  expect_error(
      [&] { group.begin_allreduce(stream, values); },
      {"on host, but wait_connect_devices() was called for cuda:0", "use an array and a stream of that device"});
}

TEST(GroupAllreduce, RejectsInvalidWaitTimeout) {
  auto const group = Group::alone();
  for (double const seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error([&] { group.set_wait_timeout_s(seconds); }, {"the wait timeout was set to", "above 0"});
  }
}

#if GPUPS_HAS_UCX
TEST(GroupAllreduce, NeedsNoStoreBetweenProcesses) {
  auto const body = [](Group const& group) {
    sum_integers(group);
    sum_by_all_algorithms(group);
  };
  for (pid_t const pid : start_ranks(3, {}, body)) EXPECT_TRUE(wait_success(pid));
}

TEST(GroupAllreduce, ErrorNamesProcessThatLeft) {
  for (pid_t const pid : start_ranks(3, {}, lose_rank_one)) EXPECT_TRUE(wait_success(pid));
}
#endif

}  // namespace
}  // namespace gpups::test::group_allreduce_test
