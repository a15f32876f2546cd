// SPDX-License-Identifier: Apache-2.0
// Rows that move while ranks train take memory by their number, and not by the number of steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/allocated_bytes.hpp"

namespace gpups::test::memory_of_moves_test {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kDim = 4;
constexpr std::uint64_t kKeys = 200, kKeysOfBatch = 20;
constexpr std::int64_t kLookahead = 6;

// Returns neighbouring keys, from one that differs by rank and step.
std::vector<Key> keys_of(Rank rank, Clock clock) {
  auto const first = static_cast<std::uint64_t>(number(clock)) * 7919 + number(rank) * 104729;
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < kKeysOfBatch; ++i) keys.push_back(Key{(first + i) % kKeys});
  return keys;
}

// Returns the bytes in use after each of these numbers of steps, which ascend.
std::vector<double> bytes_after(PlacementPolicy policy, std::vector<std::int64_t> const& steps) {
  std::vector<double> bytes;
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1, .placement = policy, .placement_bytes_min = 0});
    store.add_table({.name = "t", .dim = kDim, .expected_rows = kKeys});
    auto stream = store.make_stream();
    Matrix<float> const rows(Device::host(), kKeysOfBatch, kDim);
    MatrixView<float> const view(rows);
    std::deque<PreparedBatch> ahead;
    auto const prepare = [&](Clock clock) {
      auto const keys = keys_of(group.rank(), clock);
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
      ahead.push_back(store.prepare(stream, clock, {&part, 1}, 1));
    };
    for (std::int64_t t = 0; t < kLookahead; ++t) prepare(Clock{t});
    for (std::int64_t const end : steps) {
      while (store.clock() < Clock{end}) {
        prepare(store.clock() + kLookahead);
        store.wait_ready(ahead.front());
        store.pull(stream, ahead.front(), {&view, 1});
        TableGradients const gradients{.sources = rows, .source_indices = ahead.front().positions(0)};
        store.push(stream, ahead.front(), {&gradients, 1});
        store.advance_clock();
        ahead.pop_front();
      }
      store.wait_barrier();
      if (group.rank() == Rank{0}) bytes.push_back(allocated_bytes());
      store.wait_barrier();
    }
    EXPECT_GT(store.stats().moved_rows, kKeys);
  });
  return bytes;
}

// Every key is used, and has been away from its home, long before the first measurement. Afterwards only lists grow
// whose length differs by step, each to its longest.
TEST(MemoryOfMoves, DoesNotGrowWithSteps) {
  if (!kCountsAllocations) GTEST_SKIP() << "sanitizers have an allocator of their own";
  constexpr std::int64_t kBefore = 1000, kSteps = 2000;
  constexpr double kBytesOfStep = 20;  // of a rank: a node of a map, kept in each step, takes more
  for (auto const policy : {PlacementPolicy::kRandom, PlacementPolicy::kAdaptive, PlacementPolicy::kRelocate}) {
    auto const bytes = bytes_after(policy, {kBefore, kBefore + kSteps});
    EXPECT_LE(bytes[1] - bytes[0], kBytesOfStep * kRanks * kSteps) << name_of(policy);
  }
}

}  // namespace
}  // namespace gpups::test::memory_of_moves_test
