// SPDX-License-Identifier: Apache-2.0
// The replay of a placement policy moves the rows that a Store moves, and counts the rows that it sends.
#include "cache/placement/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::cache::placement_replay_test {
namespace {

constexpr int kRanks = 3;
constexpr std::int64_t kSteps = 20, kLookahead = 6;
constexpr std::size_t kDim = 4;

// Returns the distinct keys of a batch.
std::vector<Key> keys_of(std::uint32_t rank, std::int64_t step) {
  test::Random random(static_cast<std::uint64_t>(step) * 100 + rank);
  std::vector<Key> keys;
  for (int i = 0; i < 12; ++i) keys.push_back(Key{test::below(random, i < 4 ? 5 : 60)});
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

struct Counted {
  std::uint64_t remote = 0, moved = 0;
  bool operator==(Counted const&) const = default;
};

TableOptions table_options() { return {.name = "t", .dim = kDim, .optimizer = {.kind = Optimizer::Kind::kAdam}}; }

Counted trained(PlacementPolicy policy) {
  Counted all;
  std::mutex mutex;
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1, .placement = policy, .placement_bytes_min = 0});
    auto const table = store.add_table(table_options());
    auto stream = store.make_stream();
    std::deque<PreparedBatch> ahead;
    std::int64_t prepared = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (; prepared < std::min(kSteps, step + kLookahead + 1); ++prepared) {
        auto const keys = keys_of(number(group.rank()), prepared);
        TableBatch const part{.table = table, .keys = View<Key const>(keys)};
        ahead.push_back(store.prepare(stream, Clock{prepared}, {&part, 1}, 1));
      }
      test::run_value_dependent_step(store, stream, ahead.front());
      ahead.pop_front();
      store.wait_applied();  // batches that are prepared now are announced with the next step
    }
    auto const stats = store.stats();
    store.wait_barrier();
    std::lock_guard const lock(mutex);
    all.remote += stats.remote_keys;
    all.moved += stats.moved_rows;
  });
  return all;
}

Counted replayed(PlacementPolicy policy) {
  PlacementReplay replay(
      {.policy = policy, .ranks = kRanks, .lookahead = kLookahead, .tables = {{row_bytes(table_options(), true)}}});
  Counted all;
  std::int64_t announced = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (; announced < std::min(kSteps, number(replay.announced_end())); ++announced) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        replay.announce(Rank{rank}, Clock{announced}, 0, keys_of(rank, announced));
      }
    }
    auto const sent = replay.advance();
    all.remote += sent.reads + sent.moves;
    all.moved += sent.moves;
  }
  return all;
}

TEST(PlacementReplay, CountsTheRowsThatAStoreSendsAndMoves) {
  for (auto const policy : kPlacementPolicies) {
    auto const counted = trained(policy);
    EXPECT_EQ(replayed(policy), counted) << name_of(policy);
    bool const is_static = policy == PlacementPolicy::kStatic || policy == PlacementPolicy::kAuto;  // on one host
    EXPECT_EQ(counted.moved > 0, !is_static) << name_of(policy);
  }
}

class ReplayedNodes : public testing::TestWithParam<int> {};

TEST_P(ReplayedNodes, CountBytesByReceiver) {
  int const ranks_of_node = GetParam();
  PlacementReplay replay({.policy = PlacementPolicy::kStatic,
                          .ranks = 2,
                          .ranks_of_node = ranks_of_node,
                          .tables = {{{.read = 10, .update = 1, .move = 100}}}});
  std::vector<Key> keys;
  for (std::uint64_t key = 0; keys.size() < 3; ++key) {
    if (kernels::home_of(Key{key}, 2) == 1) keys.push_back(Key{key});
  }
  replay.announce(Rank{0}, Clock{0}, 0, keys);
  replay.announce(Rank{1}, Clock{0}, 0, keys);
  auto const sent = replay.advance();
  EXPECT_EQ(sent.keys, 6U);
  EXPECT_EQ(ranks_of_node == 2 ? sent.from_node : sent.from_others, (std::vector<double>{30, 3}));
  EXPECT_EQ(ranks_of_node == 2 ? sent.from_others : sent.from_node, (std::vector<double>{0, 0}));
  EXPECT_EQ(replay.rows_owned(), (std::vector<std::uint64_t>{0, 3}));
}

INSTANTIATE_TEST_SUITE_P(Nodes, ReplayedNodes, testing::Values(1, 2));

// A row with Adagrad's state moves to the rank that uses it several times in a row.
TEST(PlacementReplay, CountsWhatRanksKeep) {
  constexpr RowBytes kBytes{.read = 10, .update = 10, .move = 28};
  PlacementReplay replay({.policy = PlacementPolicy::kAdaptive,
                          .ranks = 2,
                          .lookahead = 4,
                          .tables = {{.bytes = kBytes}, {.bytes = kBytes, .moves = false}}});
  std::vector<Key> keys;
  for (std::uint64_t key = 0; keys.size() < 3; ++key) {
    if (kernels::home_of(Key{key}, 2) == 1) keys.push_back(Key{key});
  }
  std::int64_t announced = 0;
  for (std::int64_t step = 0; step < 6; ++step) {
    for (; announced < number(replay.announced_end()); ++announced) {
      for (std::size_t table = 0; table < 2; ++table) replay.announce(Rank{0}, Clock{announced}, table, keys);
    }
    auto const sent = replay.advance();
    EXPECT_EQ(sent.moves, step == 2 ? 3U : 0U) << step;
    EXPECT_EQ(sent.move_bytes, step == 2 ? 3 * 28 : 0) << step;
    EXPECT_EQ(sent.value_bytes, step < 2 ? 6 * 10 : 3 * 10) << step;
    EXPECT_EQ(sent.gradient_bytes, sent.value_bytes) << step;
  }
  using Counts = std::vector<std::uint64_t>;
  EXPECT_EQ(replay.rows_owned(), (Counts{3, 3}));
  auto const& moving = replay.most_kept(0);
  EXPECT_EQ(moving.owned, (Counts{3, 3}));  // rank 1 owned them before
  EXPECT_EQ(moving.replicas, (Counts{3, 0}));
  EXPECT_EQ(moving.away, (Counts{0, 3}));
  EXPECT_EQ(moving.uses, (Counts{0, 5 * 3}));
  auto const& resting = replay.most_kept(1);
  EXPECT_EQ(resting.owned, (Counts{0, 3}));
  EXPECT_EQ(resting.away, (Counts{0, 0}));
}

TEST(PlacementReplay, KnowsTheBatchesThatHomesKnow) {
  PlacementReplay far({.policy = PlacementPolicy::kAdaptive, .ranks = 2, .lookahead = 40, .tables = {{}}});
  PlacementReplay near({.policy = PlacementPolicy::kAdaptive, .ranks = 2, .lookahead = 3, .tables = {{}}});
  EXPECT_EQ(far.announced_end(), Clock{16});
  EXPECT_EQ(near.announced_end(), Clock{4});
  for (int step = 0; step < 3; ++step) far.advance(), near.advance();
  EXPECT_EQ(far.announced_end(), Clock{19});
  EXPECT_EQ(near.announced_end(), Clock{5});
}

}  // namespace
}  // namespace gpups::cache::placement_replay_test
