// SPDX-License-Identifier: Apache-2.0
// Allreduces by a device fabric, as with NCCL, together with bulk data over the same fabric. The fabric is a fake one
// between hosts.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/progress/progress_driver.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/bulk_routes.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/float_allreduce_workload.hpp"

namespace gpups::test::fabric_allreduce_test {
namespace {

using namespace gpups::comm;

constexpr int kRanks = 3;

// Ranks whose bulk data and sums use a fabric, or as threads their sums only.
struct FabricRanks {
  std::shared_ptr<FabricHub> hub = std::make_shared<FabricHub>(kRanks);
  std::vector<Group> groups = Group::threads(kRanks);
  explicit FabricRanks(bool as_threads = false) {
    if (as_threads) {
      auto ends = make_threads_by_fabric(hub);
      for (std::size_t rank = 0; rank < kRanks; ++rank) groups[rank].impl().bulk = std::move(ends[rank]);
      return;
    }
    auto const links = make_local_ucx_workers(kRanks);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      groups[rank].impl().bulk = make_ucx_bulk_transport(links[rank], std::make_shared<LocalFabric>(Rank{rank}, hub));
    }
  }
};

class FabricAllreduceOf : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FabricAllreduceOf, testing::Bool(),
                         [](auto const& test) { return test.param ? "Threads" : "Processes"; });

TEST_P(FabricAllreduceOf, SumsMatchOtherAlgorithms) {
  FabricRanks ranks(GetParam());
  run_ranks(ranks.groups, [](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    for (std::size_t const size : {0, 1, 20000, 300000}) FloatSums(group, stream, size).check_all(true);
  });
  // For each size but the first, three sums of arrays and two of vectors request it.
  EXPECT_GE(ranks.hub->summed, 3U * 5U);
  EXPECT_EQ(ranks.hub->moved > 0, !GetParam());
}

// One operation of the fabric, whatever the size, with the sums of other algorithms.
TEST_P(FabricAllreduceOf, SumsIntegersInOneOperation) {
  FabricRanks ranks(GetParam());
  std::vector<std::size_t> const sizes{1, 1000, 300000};
  run_ranks(ranks.groups, [&](Group const& group) {
    Stream stream(Device::host(), 1);
    for (std::size_t const size : sizes) {
      std::vector<std::int64_t> values(size), expected(size);
      for (std::size_t i = 0; i < size; ++i) {
        auto const large = static_cast<std::int64_t>(i << 40);
        values[i] = large * (number(group.rank()) + 1) - 1;
        expected[i] = large * (1 + 2 + 3) - kRanks;
      }
      group.wait_allreduce(stream, group.begin_allreduce(stream, View<std::int64_t>(values)));
      EXPECT_EQ(values, expected);
    }
  });
  EXPECT_EQ(ranks.hub->summed, sizes.size());
  EXPECT_EQ(ranks.hub->moved, 0U);
}

// For dense arrays.
TEST(FabricAllreduce, IsSelectedIfCheapest) {
  FabricRanks ranks;
  run_ranks(ranks.groups, [](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<float> values(1 << 18, 1);
    group.wait_allreduce(stream, group.begin_allreduce(stream, values));
    auto const lines = group.explain_allreduces();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_NE(lines[1].find("by nccl; modelled nccl "), std::string::npos) << lines[1];
    store.wait_barrier();
  });
  EXPECT_EQ(ranks.hub->summed, 1U);
}

TEST(FabricAllreduce, IsRejectedWithoutFabric) {
  auto const groups = Group::threads(2);
  run_ranks(groups, [](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<float> values(10, 1);
    AllreduceOptions const by_nccl{.algorithm = "nccl"};
    expect_error([&] { group.begin_allreduce(stream, values, by_nccl); },
                 {"\"nccl\" was requested on host", "does not connect the ranks", "use \"auto\""});
    std::vector<std::uint32_t> const indices{3};
    expect_error(
        [&] {
          group.begin_allreduce(stream, SparseView{10, indices, View<float const>(values.data(), 1)}, by_nccl);
        },
        {"does not connect the ranks"});
    store.wait_barrier();
  });
}

// A fabric would hang, so sizes are compared before it is used.
TEST(FabricAllreduce, ErrorNamesDifferentSizes) {
  FabricRanks ranks;
  run_ranks(ranks.groups, [](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<float> values(group.rank() == Rank{1} ? 70000 : 80000, 1);
    auto const sum = group.begin_allreduce(stream, values, {.algorithm = "nccl"});
    try {
      group.wait_allreduce(stream, sum);
      ADD_FAILURE();
    } catch (PeerError const& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("70000"), testing::HasSubstr("80000")));
    }
  });
  EXPECT_EQ(ranks.hub->summed, 0U);
}

using Ends = std::vector<std::unique_ptr<BulkTransport>>;

// Rank 0 waits for a sum that rank 1 was ready for, and does not begin.
TEST(FabricAllreduce, EndsIfAThreadStops) {
  Ends ends = make_threads_by_fabric(std::make_shared<FabricHub>(2));
  Stream stream(Device::host(), 1);
  std::vector<float> values(10, 1);
  View<float> const all = values;
  for (auto const& end : ends) end->sum(stream, 7, {all, all});
  ends[0]->progress();
  ends[1].reset();
  expect_error([&] { ends[0]->progress(); }, {"rank 1 stopped during a sum"});
}

// A fabric would not detect that one rank's array is shorter. In either order, rank 0 throws an error that names rank
// 1.
TEST(FabricAllreduce, RejectsOtherSizeInAnyOrder) {
  for (bool const first : {false, true}) {
    Ends const ends = make_by_fabric(2);
    Stream stream(Device::host(), 1);
    std::vector<float> values(10, 1);
    View<float> const all = values, fewer(values.data(), 9);
    auto const begin_own = [&] { ends[0]->sum(stream, 7, {all, all}); };
    auto const begin_other = [&] { ends[1]->sum(stream, 7, {fewer, fewer}); };
    first ? begin_own() : begin_other();
    ends[0]->progress();
    expect_error(
        [&] {
          first ? begin_other() : begin_own();
          for (;;) ends[0]->progress();
        },
        {"rank 1", "its allreduce differs from that of other ranks"});
  }
}

// Rank 2 starts the sums in another order, and all ranks send bulk data at the same time.
TEST_P(FabricAllreduceOf, KeepsOneOrderWithTransfers) {
  constexpr std::size_t kSums = 50, kSize = 30000;
  Ends const ends = GetParam() ? make_threads_by_fabric(std::make_shared<FabricHub>(kRanks)) : make_by_fabric(kRanks);
  Stream stream(Device::host(), 1);
  std::vector<std::vector<float>> values(kRanks * kSums), sent(kRanks * kSums), came(kRanks * kSums);
  std::vector<std::vector<Transfer>> open(kRanks);
  for (std::size_t k = 0; k < kSums; ++k) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      std::size_t const sum = rank == 2 ? kSums - 1 - k : k;
      auto& mine = values[rank * kSums + sum];
      mine.assign(kSize, static_cast<float>(sum * (rank + 1)));
      open[rank].push_back(ends[rank]->sum(stream, sum, {View<float const>(mine), View<float>(mine)}));
      Rank const next{(rank + 1) % kRanks}, before{(rank + kRanks - 1) % kRanks};
      auto& given = sent[rank * kSums + k];
      given.assign(kSize, static_cast<float>(rank * kSums + k));
      open[rank].push_back(ends[rank]->send(stream, next, k, given.data(), kSize * sizeof(float)));
      auto& place = came[rank * kSums + k];
      place.resize(kSize);
      open[rank].push_back(ends[rank]->receive_into(stream, before, k, place.data(), kSize * sizeof(float)));
    }
  }
  for (std::size_t left = kRanks * kSums * 3; left > 0;) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ends[rank]->progress();
      left -= std::erase_if(open[rank], [&](Transfer transfer) { return ends[rank]->done(transfer); });
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], std::vector<float>(kSize, static_cast<float>(6 * (i % kSums))));
    EXPECT_EQ(came[i], sent[(i + (kRanks - 1) * kSums) % sent.size()]) << "the data of the rank before";
  }
}

// An aborted fabric ends operations early: they must not count as done. The caller of abort() reports the error.
TEST(FabricAllreduce, AbortedFabricCompletesNothing) {
  auto const hub = std::make_shared<FabricHub>(2);
  std::vector<std::shared_ptr<LocalFabric>> fabrics;
  Ends ends;
  for (auto const& link : make_local_ucx_workers(2)) {
    fabrics.push_back(std::make_shared<LocalFabric>(link->rank(), hub));
    ends.push_back(make_ucx_bulk_transport(link, fabrics.back()));
  }
  Stream stream(Device::host(), 1);
  std::vector<float> mine(10, 1), other(10, 1);
  auto const sum = ends[0]->sum(stream, 7, {View<float const>(mine), View<float>(mine)});
  ends[1]->sum(stream, 7, {View<float const>(other), View<float>(other)});
  auto const begun = [&] {
    std::lock_guard lock(hub->mutex);
    return !hub->sums.empty();
  };
  while (!begun()) ends[0]->progress();
  fabrics[0]->abort();
  for (int turn = 0; turn < 100; ++turn) {
    ends[0]->progress();
    EXPECT_FALSE(ends[0]->done(sum));
  }
  EXPECT_EQ(hub->summed, 0U);
}

// A channel on which the test sends data itself.
struct DataChannel final : Channel {
  void received(Rank, std::string_view) override { ADD_FAILURE() << "no message is sent"; }
  void closed_by(Rank) override {}
  bool progress(bool) override { return false; }
  bool idle() const override { return true; }
  PendingPeers pending_peers() const override { return {}; }
  std::string unmatched_call(Rank) const override { return {}; }
};

// Rank 0 puts transfers into order. It has nothing to do itself, but stays until the other ranks have closed their
// channels.
TEST(FabricAllreduce, Rank0StaysForTransfersOfOthers) {
  FabricRanks ranks;
  run_ranks(ranks.groups, [](Group const& group) {
    constexpr std::size_t kSize = 100000, kBytes = kSize * sizeof(float);
    std::vector<float> const sent(kSize, 7);
    std::vector<float> received(kSize);
    DataChannel channel;
    WaitLimit const limit{20, "the test"};
    auto& engine = group.impl().engine();
    auto& messenger = engine.messenger();
    messenger.open(ChannelId::kStore, channel);
    engine.start();
    std::atomic<bool> done = group.rank() == Rank{0};
    if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // rank 0 could leave meanwhile
    Stream stream(Device::host(), 1);
    auto const end = [&] { done = true; };
    engine.wait_invoke([&] {
      if (group.rank() == Rank{1}) {
        messenger.send_data(ChannelId::kStore, stream, Rank{2}, 1, sent.data(), kBytes, &TrafficByKind::lookups,
                            nullptr, end);
      } else if (group.rank() == Rank{2}) {
        messenger.receive_data(
            ChannelId::kStore, stream, Rank{1}, 1, kBytes, &TrafficByKind::lookups, [&] { return received.data(); },
            end);
      }
    });
    engine.wait([&] { return done.load(); }, limit);
    if (group.rank() == Rank{2}) EXPECT_EQ(received, sent);
    engine.wait_close(ChannelId::kStore, limit);
  });
  EXPECT_EQ(ranks.hub->moved, 1U);
}

// The bytes that NCCL really sends are unknown.
TEST(FabricAllreduce, CountsBytesOfRing) {
  constexpr std::size_t kSize = 30000;
  FabricRanks ranks;
  run_ranks(ranks.groups, [](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<float> values(kSize, 1);
    group.wait_allreduce(stream, group.begin_allreduce(stream, values, {.algorithm = "nccl"}));
    store.wait_barrier();
    auto const stats = store.stats();
    Rank const next{(number(group.rank()) + 1) % kRanks}, before{(number(group.rank()) + kRanks - 1) % kRanks};
    std::size_t const bytes = 2 * kSize * sizeof(float) * (kRanks - 1) / kRanks;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(stats.peers[rank].sent.allreduces, Rank{rank} == next ? bytes : 0);
      EXPECT_EQ(stats.peers[rank].received.allreduces, Rank{rank} == before ? bytes : 0);
    }
  });
}

}  // namespace
}  // namespace gpups::test::fabric_allreduce_test
