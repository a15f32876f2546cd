// SPDX-License-Identifier: Apache-2.0
// Patterns of batches: they depend on the batch alone, for any number of threads, and invalid batches are rejected.
#include "cache/batch/prepared_batch.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::cache::prepare_test {
namespace {

using test::expect_error;
using Ids = std::vector<std::uint32_t>;

// Two parts of one table, one that is large, some that are empty, and one with bags.
struct Batch {
  std::vector<std::vector<Key>> keys;
  Ids offsets{0, 40, 40, 4000, 5000};
  std::vector<TableBatch> tables;

  explicit Batch(std::uint64_t seed) {
    test::Random random(seed);
    std::uint32_t const table[] = {0, 1, 1, 0, 2};
    for (std::size_t const n : {0, 5000, 3, 90'000, 0}) keys.push_back(test::zipf_keys(random, n, 3000));
    for (std::size_t p = 0; p < keys.size(); ++p) tables.push_back({TableId{table[p]}, keys[p]});
    tables[1].offsets = offsets;
  }
};

std::shared_ptr<BatchPattern::Impl const> prepare(Stream& stream, std::vector<TableBatch> const& tables,
                                                  int ranks = 3) {
  return wait_make_pattern(stream, tables, 7, ranks, 3);
}

bool same_bits(BatchPattern::Impl const& a, BatchPattern::Impl const& b) {
  auto const same = [](auto x, auto y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  bool all = a.parts.size() == b.parts.size();
  for (std::size_t p = 0; all && p < a.parts.size(); ++p) {
    PatternPart const &x = a.parts[p], &y = b.parts[p];
    all = same(x.keys, y.keys) && same(x.positions, y.positions) && same(x.offsets, y.offsets) &&
          same(x.order, y.order) && x.homes == y.homes && same(x.bags.view(), y.bags.view()) &&
          same(x.bag_of.view(), y.bag_of.view());
  }
  return all;
}

TEST(Prepare, GroupsKeysByOwnerAndEntriesByKey) {
  Batch const batch(1);
  Stream stream(Device::host(), 2);
  auto const prepared = prepare(stream, batch.tables);
  ASSERT_EQ(prepared->parts.size(), batch.tables.size());
  for (std::size_t p = 0; p < batch.tables.size(); ++p) {
    PatternPart const& part = prepared->parts[p];
    EXPECT_EQ(part.table, batch.tables[p].table);
    EXPECT_EQ(part.entries, batch.keys[p].size());
    ASSERT_EQ(part.keys.size(), part.rows);
    ASSERT_EQ(part.offsets.size(), part.rows + 1);
    for (std::uint32_t owner = 0; owner < 3; ++owner) {
      for (auto r = part.homes[owner]; r < part.homes[owner + 1]; ++r) {
        ASSERT_EQ(kernels::home_of(part.keys[r], 3), owner);
      }
    }
    std::size_t entries = 0;
    for (std::uint32_t r = 0; r < part.rows; ++r) {
      for (auto at = part.offsets[r]; at < part.offsets[r + 1]; ++at, ++entries) {
        ASSERT_EQ(part.positions[part.order[at]], r);
        ASSERT_EQ(batch.keys[p][part.order[at]], part.keys[r]);
      }
    }
    EXPECT_EQ(entries, part.entries);
  }
  Ids bag_of(40, 0);
  bag_of.resize(4000, 2);
  bag_of.resize(5000, 3);
  EXPECT_EQ(to_host(stream, prepared->parts[1].bag_of.view()), bag_of);
  EXPECT_EQ(to_host(stream, prepared->parts[1].bags.view()), batch.offsets);
  EXPECT_TRUE(prepared->parts[3].bags.empty());
}

TEST(Prepare, ConcurrentThreadsGetSameResult) {
  Stream stream(Device::host(), 3);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t, own = stream.sibling()]() mutable {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        Batch const batch(seed);
        Stream alone(Device::host(), 1);
        wrong[t] += same_bits(*prepare(own, batch.tables), *prepare(alone, batch.tables)) ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Prepare, RejectsInvalidBatches) {
  Stream stream(Device::host(), 1);
  std::vector<Key> const keys(6);
  expect_error([&] { prepare(stream, {{TableId{3}, keys}}); }, {"uses table 3", "add the table first"});
  View<Key const> const half(keys.data(), std::size_t{1} << 27);  // longer than the array, and never read
  expect_error([&] { prepare(stream, {{TableId{0}, half}, {TableId{1}, half}}); }, {"268435456 entries", "smaller"});
  for (Ids const& wrong : {Ids{0, 5}, Ids{1, 6}, Ids{0, 4, 3, 6}, Ids{6}}) {
    Ids const right{0, 6};
    expect_error(
        [&] {
          prepare(stream, {{TableId{0}, keys, right}, {TableId{2}, keys, wrong}});
        },
        {"bag offsets of table 2", "there are 6 entries"});
  }
}

TEST(Prepare, AcceptsEmptyBatchesAndParts) {
  Stream stream(Device::host(), 2);
  EXPECT_TRUE(prepare(stream, {})->parts.empty());
  Ids const no_bags{0};
  auto const prepared = prepare(stream, {{TableId{0}, {}, no_bags}, {TableId{1}, {}}});
  for (PatternPart const& part : prepared->parts) {
    EXPECT_EQ(part.rows, 0U);
    EXPECT_EQ(to_host(stream, part.offsets), Ids{0});
  }
}

}  // namespace
}  // namespace gpups::cache::prepare_test
