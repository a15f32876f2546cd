// SPDX-License-Identifier: Apache-2.0
// The replay of HET gives the known answers for few rows and ranks.
#include "cache/placement/het/het_replay.hpp"

#include <gtest/gtest.h>

#include "kernels/base/hash.hpp"

namespace gpups::cache::het_replay_test {
namespace {

constexpr RowBytes kBytes{.read = 100, .update = 10, .move = 0};
constexpr double kKeyAndVersion = 16;

// Returns n keys whose home is this rank of two.
std::vector<Key> keys_at(std::uint32_t home, std::size_t n) {
  std::vector<Key> keys;
  for (std::uint64_t key = 0; keys.size() < n; ++key) {
    if (kernels::home_of(Key{key}, 2) == home) keys.push_back(Key{key});
  }
  return keys;
}

// Only rank 0 uses the rows, so its copies never lack an update.
TEST(HetReplay, ARankThatUsesARowAloneFetchesItOnce) {
  for (std::uint64_t const write_bound : {0, 2}) {
    HetReplay replay({.ranks = 2, .read_bound = 0, .write_bound = write_bound, .tables = {{kBytes, 100}}});
    auto const keys = keys_at(1, 5);
    for (std::uint64_t step = 0; step < 7; ++step) {
      SCOPED_TRACE(step);
      replay.announce(Rank{0}, 0, keys);
      auto const counts = replay.advance();
      std::size_t const fetched = step == 0 ? 5 : 0, pushed = step % (write_bound + 1) == write_bound ? 5 : 0;
      EXPECT_EQ(counts.sent.keys, 5);
      EXPECT_EQ(counts.sent.reads, fetched);
      EXPECT_EQ(counts.sent.leased, 5 - fetched);
      EXPECT_EQ(counts.sent.updates, pushed);
      EXPECT_EQ(counts.sent.moves, 0);
      for (auto const& row : counts.pushed) EXPECT_EQ(row.updates, write_bound + 1);
      EXPECT_EQ(counts.sent.value_bytes, 100.0 * static_cast<double>(fetched));
      EXPECT_EQ(counts.sent.gradient_bytes, 10.0 * static_cast<double>(pushed));
      EXPECT_EQ(counts.sent.key_bytes, kKeyAndVersion * static_cast<double>(5 + fetched + pushed));
      EXPECT_EQ(counts.plain_bytes, 5 * (100 + 10 + 2 * 8));
    }
  }
}

// With bounds of 0, every update is pushed, and every copy that another rank has updated is fetched.
TEST(HetReplay, BoundsOfZeroSendEveryUpdate) {
  HetReplay replay({.ranks = 2, .tables = {{kBytes, 100}}});
  auto const keys = keys_at(1, 4);
  std::span const shared(keys.data(), 3);  // rank 1, their home, updates these in odd steps
  for (int step = 0; step < 8; ++step) {
    SCOPED_TRACE(step);
    replay.announce(Rank{0}, 0, keys);
    if (step % 2 == 1) replay.announce(Rank{1}, 0, shared);
    auto const counts = replay.advance();
    EXPECT_EQ(counts.sent.updates, 4);
    EXPECT_EQ(counts.sent.reads, step == 0 ? 4 : step % 2 == 0 ? 3 : 0);
    EXPECT_EQ(counts.sent.keys, step % 2 == 1 ? 7 : 4);
  }
  EXPECT_EQ(replay.rows_owned(0), (std::vector<std::uint64_t>{0, 4}));
}

// The home updates the row in each step, so a copy with read bound 2 is fetched in every third step.
TEST(HetReplay, ACopyIsReadUntilItLacksTooManyUpdates) {
  HetReplay replay({.ranks = 2, .read_bound = 2, .write_bound = 1000, .tables = {{kBytes, 100}}});
  auto const keys = keys_at(1, 1);
  for (int step = 0; step < 12; ++step) {
    SCOPED_TRACE(step);
    for (std::uint32_t rank = 0; rank < 2; ++rank) replay.announce(Rank{rank}, 0, keys);
    auto const counts = replay.advance();
    EXPECT_EQ(counts.sent.reads, step % 3 == 0 ? 1 : 0);
    EXPECT_EQ(counts.sent.updates, 0);
    auto const lines = replay.cache_of(Rank{0}, 0).lines();
    ASSERT_EQ(lines.size(), 1);
    EXPECT_EQ(lines[0].updates, step + 1);  // fetching the value pushes nothing
  }
}

// Parts of a batch that use the same row are one use with one update.
TEST(HetReplay, ARowOfSeveralPartsCountsOnce) {
  HetReplay replay({.ranks = 2, .tables = {{kBytes, 100}}});
  auto const keys = keys_at(1, 3);
  replay.announce(Rank{0}, 0, keys);
  replay.announce(Rank{0}, 0, std::span(keys).first(2));
  auto const counts = replay.advance();
  EXPECT_EQ(counts.sent.keys, 3);
  ASSERT_EQ(counts.pushed.size(), 3);
  for (auto const& row : counts.pushed) EXPECT_EQ(row.updates, 1);
}

// Two rows take turns in a cache with one line: each eviction pushes the update that waits.
TEST(HetReplay, AnEvictionPushesWhatWaits) {
  HetReplay replay({.ranks = 2, .read_bound = 1000, .write_bound = 1000, .tables = {{kBytes, 1}}});
  auto const keys = keys_at(1, 2);
  for (std::size_t step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    replay.announce(Rank{0}, 0, {&keys[step % 2], 1});
    auto const counts = replay.advance();
    EXPECT_EQ(counts.sent.reads, 1);
    ASSERT_EQ(counts.pushed.size(), step == 0 ? 0 : 1);
    if (step == 0) continue;
    EXPECT_EQ(counts.pushed[0].key, keys[(step + 1) % 2]);
    EXPECT_EQ(counts.pushed[0].updates, 1);
  }
}

class HetNodes : public testing::TestWithParam<int> {};

TEST_P(HetNodes, CountBytesByReceiver) {
  HetReplay replay({.ranks = 2, .ranks_of_node = GetParam(), .tables = {{kBytes, 100}}});
  auto const keys = keys_at(1, 3);
  for (std::uint32_t rank = 0; rank < 2; ++rank) replay.announce(Rank{rank}, 0, keys);
  auto const sent = replay.advance().sent;
  EXPECT_EQ(GetParam() == 2 ? sent.from_node : sent.from_others, (std::vector<double>{300, 30}));
  EXPECT_EQ(GetParam() == 2 ? sent.from_others : sent.from_node, (std::vector<double>{0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Nodes, HetNodes, testing::Values(1, 2));

}  // namespace
}  // namespace gpups::cache::het_replay_test
