// SPDX-License-Identifier: Apache-2.0
// What a home knows about the owners of its rows, before a planned step and in it.
#include "cache/placement/owner_directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/on_devices.hpp"

namespace gpups::cache::owner_directory_test {
namespace {

class OwnerDirectoryOn : public test::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    stream_.emplace(GetParam(), 1);
    directories_.start(GetParam(), Rank{0}, 1, 2);
  }
  static std::vector<Key> keys(std::uint64_t first, std::uint64_t count) {
    std::vector<Key> keys;
    for (std::uint64_t key = first; key < first + count; ++key) keys.push_back(Key{key});
    return keys;
  }
  // Plans a step in which one rank uses rows of table 1, so that they move to it.
  void move(std::int64_t step, std::uint32_t rank, std::vector<Key> const& used) {
    auto const memory = std::make_shared<Array<Key>>(to_device(*stream_, used));
    AnnouncedUses uses;
    uses.add(Clock{step}, {Rank{rank}, {{TableId{1}, *memory, memory}}});
    kernels::HostReads reads(*stream_);
    uses.list_keys(*stream_, 2, Clock{step}, reads);
    reads.wait();
    auto const rows = uses.list_rows_with_users(*stream_, Clock{step}, reads);
    std::vector<kernels::RowsOfTable> tables;
    for (auto const& table : rows.tables) {
      tables.push_back({.first = table.first, .size = table.size, .policy = PlacementPolicy::kRelocate});
    }
    auto const planned = directories_.choose(*stream_, rows, tables, {}, Clock{step});
    directories_.wait_plan(*stream_, rows, planned, to_host(*stream_, planned.counts.view()), Clock{step});
  }
  OwnerDirectory::Entry entry(std::uint64_t key, std::int64_t step) {
    return directories_.at(TableId{1}).wait_entries(*stream_, View<Key const>(keys(key, 1)), Clock{step})[0];
  }
  void expect(std::uint64_t key, std::int64_t step, std::uint32_t owner, std::int64_t since) {
    auto const known = entry(key, step);
    EXPECT_EQ(known.owner, Rank{owner}) << "key " << key << " in step " << step;
    EXPECT_EQ(known.since, Clock{since}) << "key " << key << " in step " << step;
    EXPECT_EQ(known.reason, owner == 0 ? PlacementReason::kHome : PlacementReason::kPolicy);
  }
  std::size_t away(std::int64_t step) { return directories_.at(TableId{1}).wait_list(*stream_, Clock{step}).size(); }

  std::optional<Stream> stream_;
  OwnerDirectories directories_;
};

// So many rows return that the directory forgets them while steps are planned.
TEST_P(OwnerDirectoryOn, KnowsTheOwnersAroundEachStep) {
  move(2, 1, keys(0, 10'000));
  expect(7, 1, 0, 0);
  expect(7, 2, 1, 2);
  EXPECT_EQ(away(1), 0U);
  EXPECT_EQ(away(2), 10'000U);
  move(3, 0, keys(0, 9'000));
  expect(7, 2, 1, 2);
  expect(7, 3, 0, 0);
  expect(9'500, 3, 1, 2);
  EXPECT_EQ(away(2), 10'000U);
  EXPECT_EQ(away(3), 1'000U);
  move(4, 2, keys(0, 5'000));
  expect(7, 3, 0, 0);
  expect(7, 4, 2, 4);
  expect(6'000, 4, 0, 0);
  EXPECT_EQ(away(4), 6'000U);
  move(5, 1, keys(20'000, 9'000));  // new keys, some with numbers of those that were forgotten
  for (std::uint64_t const key : {7ULL, 4'999ULL}) expect(key, 5, 2, 4);
  expect(6'000, 5, 0, 0);
  expect(20'000, 4, 0, 0);
  expect(28'999, 5, 1, 5);
  EXPECT_EQ(away(5), 15'000U);
  EXPECT_EQ(directories_.at(TableId{0}).wait_list(*stream_, Clock{5}).size(), 0U);
}

TEST_P(OwnerDirectoryOn, SetsRowsBetweenSteps) {
  auto& directory = directories_.at(TableId{1});
  auto const three = keys(5, 3);
  std::vector<OwnerDirectory::Entry> const entries{{Rank{1}, PlacementReason::kLocalized, Clock{4}},
                                                   {Rank{0}, PlacementReason::kLocalized, Clock{4}},
                                                   {Rank{2}, PlacementReason::kLocalized, Clock{4}}};
  directory.wait_set(*stream_, View<Key const>(three), entries, Clock{4});
  EXPECT_EQ(directory.wait_owners(*stream_, View<Key const>(three), Clock{4}),
            (std::vector{Rank{1}, Rank{0}, Rank{2}}));
  EXPECT_EQ(entry(7, 4).reason, PlacementReason::kLocalized);
  directory.wait_return(*stream_, View<Key const>(three), Clock{6});
  EXPECT_EQ(directory.wait_owners(*stream_, View<Key const>(three), Clock{6}), std::vector(3, Rank{0}));
  EXPECT_EQ(away(6), 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices, OwnerDirectoryOn, test::kDevices, test::device_name);

}  // namespace
}  // namespace gpups::cache::owner_directory_test
