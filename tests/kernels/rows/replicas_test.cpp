// SPDX-License-Identifier: Apache-2.0
// The words of replicas: which ones stay when rows are marked, and which replicas are taken.
#include "kernels/rows/replicas.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/on_devices.hpp"

namespace gpups::kernels::replica_uses_test {
namespace {

using test::device_name;
using test::kDevices;

class ReplicaUses : public test::OnDevice {
 protected:
  // Rows 0 .. 4: owned, and replicas whose last uses are in steps 5, 7, 9 and 30.
  ReplicaUses() : uses_(stream_.device(), 1, NewRows::kZero) {
    uses_.reserve(stream_, 5);
    for (std::uint32_t id = 1; id < 5; ++id) mark({id}, replica_word(Clock{std::vector{0, 5, 7, 9, 30}[id]}));
  }

  void mark(std::vector<std::uint32_t> const& ids, std::uint32_t word, bool skip_owned = false) {
    auto const there = to_device(stream_, ids);
    mark_replicas(stream_, {.uses = uses_.ref(), .ids = there, .word = word, .skip_owned = skip_owned});
    stream_.wait();
  }
  std::vector<std::uint32_t> take(std::int64_t now, std::uint32_t age) {
    Array<std::uint32_t> const taken(stream_.device(), 5), counts(stream_.device(), 1);
    TakeReplicas const all{.uses = uses_.ref(), .rows = 5, .now = replica_word(Clock{now}), .age = age, .taken = taken};
    take_replicas(stream_, {&all, 1}, counts);
    auto ids = to_host(stream_, taken.view());
    ids.resize(to_host(stream_, counts.view())[0]);
    return ids;
  }

  // Cases without their device are skipped after construction.
  Stream stream_{test::devices().size() > 1 ? GetParam() : Device::host(), 1};
  RowStorage<std::uint32_t> uses_;
};

using Ids = std::vector<std::uint32_t>;

TEST_P(ReplicaUses, UnusedReplicasAreTakenOnce) {
  EXPECT_EQ(take(9, 2), (Ids{1, 2}));
  EXPECT_EQ(take(9, 0), (Ids{3})) << "row 4 is kept for step 30";
  EXPECT_EQ(take(30, 0), (Ids{4}));
  EXPECT_EQ(take(100, 0), Ids{});
}

TEST_P(ReplicaUses, ReplicasAreCountedByAge) {
  auto const count = [&](std::int64_t now) {
    Array<std::uint32_t> const counts(stream_.device(), 2 * kReplicaAges);
    CountReplicas const table{.uses = uses_.ref(), .rows = 5, .now = replica_word(Clock{now})};
    std::vector<CountReplicas> const twice{table, {uses_.ref(), 3, table.now}};
    memory::fill_bytes(stream_, counts.data(), 0, counts.bytes());
    count_replicas(stream_, twice, counts);
    auto const all = to_host(stream_, counts.view());
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] > 0) text += fmt::format("{}:{} ", i % kReplicaAges, all[i]) + (i < kReplicaAges ? "" : "second ");
    }
    return text;
  };
  EXPECT_EQ(count(9), "0:1 2:1 3:1 2:1 second 3:1 second ") << "0, 2 and 4 steps; row 4 is used later";
  EXPECT_EQ(count(1'000'000), "20:4 20:2 second ");
  for (std::size_t age = 0; age + 1 < kReplicaAges; ++age) {
    EXPECT_LT(least_steps(age), least_steps(age + 1));
  }
}

TEST_P(ReplicaUses, LaterUsesStay) {
  mark({1, 2, 3, 4}, replica_word(Clock{8}));
  EXPECT_EQ(take(8, 0), (Ids{1, 2}));
  EXPECT_EQ(take(9, 0), (Ids{3}));
  EXPECT_EQ(take(29, 0), Ids{});
}

TEST_P(ReplicaUses, OwnedRowsStayIfTheyAreSkipped) {
  mark({0, 1}, replica_word(Clock{20}), true);
  EXPECT_EQ(take(20, 0), (Ids{1, 2, 3}));
  mark({0}, replica_word(Clock{20}));
  EXPECT_EQ(take(20, 0), (Ids{0}));
  mark({4}, kOwned);
  EXPECT_EQ(take(100, 0), Ids{});
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplicaUses, kDevices, device_name);

}  // namespace
}  // namespace gpups::kernels::replica_uses_test
