// SPDX-License-Identifier: Apache-2.0
// Rows that move while ranks train: where they go, what is sent for them, and calls that read them meanwhile.
// simulation_placement_test.cpp compares the results of all policies.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::moving_rows_test {
namespace {

constexpr std::int64_t kLookahead = 5;

// Returns the n-th key with this home, of two ranks.
Key key_of_home(std::uint32_t home, int n) {
  for (std::uint64_t key = 0;; ++key) {
    if (kernels::home_of(Key{key}, 2) == home && n-- == 0) return Key{key};
  }
}

// A store of one table of Adagrad rows on two ranks, and batches that each rank prepares ahead.
class MovingRank {
 public:
  explicit MovingRank(Group const& group, RowCompression const& gradients = {})
      : MovingRank(group, {.threads = 1, .placement = PlacementPolicy::kAdaptive, .placement_bytes_min = 0},
                   gradients) {}
  MovingRank(Group const& group, StoreOptions const& options, RowCompression const& gradients) : store(group, options) {
    table = store.add_table({.name = "t",
                             .dim = 4,
                             .initializer = {Initializer::Kind::kUniform, 0.1F},
                             .optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F},
                             .gradient_compression = gradients});
    stream = store.make_stream();
  }

  // Trains steps up to `last` on batches of keys_of(step), and keeps batches prepared up to `end`.
  template <class KeysOf>
  void train(std::int64_t last, std::int64_t end, KeysOf keys_of) {
    for (std::int64_t step = number(store.clock()); step < last; ++step) {
      for (; prepared < std::min(end, step + kLookahead + 1); ++prepared) {
        std::vector<Key> const keys = keys_of(prepared);
        TableBatch const part{.table = table, .keys = View<Key const>(keys)};
        ahead.push_back(store.prepare(stream, Clock{prepared}, {&part, 1}, keys.size()));
      }
      run_value_dependent_step(store, stream, ahead.front());
      ahead.pop_front();
    }
  }

  std::vector<float> lookup(Key key) {
    Matrix<float> const out(Device::host(), 1, 4);
    store.lookup(stream, table, View<Key const>(&key, 1, Device::host()), out, {});
    return {out.view().row(0), out.view().row(0) + 4};
  }

  Store store;
  TableId table{};
  Stream stream{Device::host(), 1};
  std::deque<PreparedBatch> ahead;
  std::int64_t prepared = 0;
};

// Runs `of_rank` on all ranks, and returns what it returns.
template <class OfRank>
auto on_ranks(std::vector<Group> const& groups, OfRank of_rank) {
  std::mutex mutex;
  std::map<std::uint32_t, decltype(of_rank(Group::alone()))> results;
  run_ranks(groups, [&](Group const& group) {
    auto result = of_rank(group);
    std::lock_guard const lock(mutex);
    results[number(group.rank())] = std::move(result);
  });
  return results;
}

template <class OfRank>
auto on_two_ranks(OfRank of_rank) {
  return on_ranks(Group::threads(2), of_rank);
}

TEST(MovingRows, RowMovesToItsOnlyUserAndIsNotSentAgain) {
  Key const key = key_of_home(0, 0);
  on_two_ranks([&](Group const& group) {
    MovingRank rank(group);
    bool const uses = group.rank() == Rank{1};
    auto const keys = [&](std::int64_t) { return uses ? std::vector{key} : std::vector<Key>{}; };
    rank.train(6, 100, keys);
    auto const row = rank.store.where(rank.table, key);
    EXPECT_EQ(row.owner, Rank{1});
    EXPECT_EQ(row.home, Rank{0});
    EXPECT_EQ(row.reason, PlacementReason::kPolicy);
    EXPECT_EQ(row.since, Clock{2});  // the first step that is planned
    rank.store.wait_barrier();
    auto const before = rank.store.stats();
    rank.train(20, 100, keys);
    rank.store.wait_barrier();
    auto const after = rank.store.stats();
    EXPECT_EQ(after.sent.gradients, before.sent.gradients);
    EXPECT_EQ(after.sent.refreshes, before.sent.refreshes);
    EXPECT_EQ(after.moved_rows, before.moved_rows);
    EXPECT_EQ(after.remote_keys, before.remote_keys);
    EXPECT_EQ(after.remote_home_keys > before.remote_home_keys, uses) << "its home is the other rank";
    EXPECT_EQ(after.owned_rows, uses ? 1U : 0U);
    return 0;
  });
}

// The users of a row change every four steps. Rows move in both directions, and look-ups from both ranks find them. On
// a slow network, a look-up may be at the new owner before the row.
TEST(MovingRows, LookupsAndScansFindRowsOnTheirWay) {
  std::vector<Key> const rows{key_of_home(0, 0), key_of_home(0, 1), key_of_home(1, 0), key_of_home(1, 1)};
  auto const run = [&](Group const& group) {
    MovingRank rank(group);
    auto const keys = [&](std::int64_t step) {
      std::vector<Key> mine;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        bool const turn = (static_cast<std::uint64_t>(step) / 4 + i) % 2 == number(group.rank());
        if (group.size() == 1 || turn) mine.push_back(rows[i]);
      }
      return mine;
    };
    std::vector<float> read;
    for (std::int64_t step = 1; step <= 20; ++step) {
      rank.train(step, 100, keys);
      for (Key const key : rows) {
        auto const values = rank.lookup(key);
        read.insert(read.end(), values.begin(), values.end());
      }
      rank.store.wait_barrier();
      EXPECT_EQ(rank.store.size(rank.table), rows.size());
    }
    EXPECT_TRUE(group.size() == 1 || rank.store.stats().moved_rows > 3);
    return read;
  };
  auto const alone = run(Group::alone());
  EXPECT_EQ(on_two_ranks(run), (std::map{std::pair{0U, alone}, std::pair{1U, alone}}));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const of_ranks = on_ranks(Group::simulated(2, {.seed = seed, .delay_ms_max = 20}), run);
    EXPECT_EQ(of_ranks, (std::map{std::pair{0U, alone}, std::pair{1U, alone}})) << "seed " << seed;
  }
}

// Rank 1 uses two rows of rank 0, and rank 0 uses one of them: in each step, until the end of training.
TEST(MovingRows, HottestRowsAreThoseWithTheMostAnnouncedUses) {
  Key const shared = key_of_home(0, 0), of_one = key_of_home(0, 1), rare = key_of_home(0, 2);
  on_two_ranks([&](Group const& group) {
    MovingRank rank(group);
    bool const is_home = group.rank() == Rank{0};
    auto const keys = [&](std::int64_t step) {
      std::vector<Key> mine{shared};
      if (!is_home) mine.push_back(of_one);
      if (!is_home && step % 2 == 0) mine.push_back(rare);
      return mine;
    };
    EXPECT_TRUE(rank.store.hottest_rows(5).empty());
    for (std::int64_t const last : {12, 20}) {
      rank.train(last, 20, keys);
      rank.store.wait_barrier();
      auto const rows = rank.store.hottest_rows(2);
      EXPECT_EQ(rows.size(), is_home ? 2U : 0U);
      if (!is_home) continue;
      EXPECT_EQ(rows[0].key, shared);
      EXPECT_GT(rows[0].uses[0], 1U) << "uses in later steps count";
      EXPECT_GT(rows[0].uses[1], 1U);
      EXPECT_EQ(rows[1].key, of_one);
      EXPECT_EQ(rows[1].uses[0], 0U);
      EXPECT_GT(rows[1].uses[1], 1U);
      EXPECT_LT(rows[1].all_uses(), rows[0].all_uses());
      EXPECT_EQ(rows[1].placement.owner, Rank{1});
      EXPECT_EQ(rows[1].placement.home, Rank{0});
      EXPECT_EQ(rows[1].placement.since, Clock{2});
      EXPECT_EQ(rows[1].placement.reason, PlacementReason::kPolicy);
    }
    rank.store.wait_barrier();
    return 0;
  });
}

// A checkpoint has the owners of the current step, although those of the next step are planned.
TEST(MovingRows, CheckpointBetweenMovesContinuesWithTheSameBits) {
  TemporaryFolder const folder;
  std::vector<Key> const rows{key_of_home(0, 0), key_of_home(1, 0)};
  auto const keys_of = [&](Group const& group, std::int64_t step) {
    std::vector<Key> mine;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if ((static_cast<std::uint64_t>(step) / 3 + i) % 2 == number(group.rank())) mine.push_back(rows[i]);
    }
    return mine;
  };
  for (std::int64_t saved = 4; saved <= 9; ++saved) {
    auto const whole = on_two_ranks([&](Group const& group) {
      MovingRank rank(group);
      auto const keys = [&](std::int64_t step) { return keys_of(group, step); };
      rank.train(saved, 14, keys);
      rank.store.save(folder.path(), {});
      rank.train(14, 14, keys);
      return rank.store.table_hash();
    });
    auto const resumed = on_two_ranks([&](Group const& group) {
      MovingRank rank(group);
      rank.store.restore(folder.path());
      rank.prepared = number(rank.store.clock());
      rank.train(14, 14, [&](std::int64_t step) { return keys_of(group, step); });
      return rank.store.table_hash();
    });
    EXPECT_EQ(resumed, whole) << "saved before step " << saved;
  }
}

// A rank that has ended the first step after a restore answers one that has not.
TEST(MovingRows, RowsAreReadBeforeTheFirstStepAfterARestore) {
  TemporaryFolder const folder;
  std::vector<Key> const rows{key_of_home(0, 0), key_of_home(1, 0)};
  auto const keys = [&](std::int64_t) { return rows; };
  StoreOptions options{.threads = 1, .placement = PlacementPolicy::kAdaptive, .placement_bytes_min = 0};
  options.wait_timeout_s = 30;
  auto const trained = on_two_ranks([&](Group const& group) {
    MovingRank rank(group, options, {});
    rank.train(6, 20, keys);
    rank.store.save(folder.path(), {});
    auto const row = rank.lookup(rows[0]);
    rank.store.wait_barrier();
    return row;
  });
  on_two_ranks([&](Group const& group) {
    MovingRank rank(group, options, {});
    rank.store.restore(folder.path());
    rank.prepared = 6;
    if (group.rank() == Rank{0}) rank.train(7, 20, keys);
    rank.store.wait_barrier();
    if (group.rank() == Rank{1}) {
      EXPECT_EQ(rank.lookup(rows[0]), trained.at(1));
      EXPECT_EQ(rank.store.where(rank.table, rows[0]).home, Rank{0});
      rank.train(7, 20, keys);
    }
    rank.train(10, 20, keys);
    rank.store.wait_barrier();
    return 0;
  });
}

// The policy depends on hosts by default: rows, if they are not narrow, move between them, and to the host with most
// users of a row.
TEST(MovingRows, MoveBetweenHosts) {
  Key const key = key_of_home(0, 0);
  auto const owner = [&](int ranks_per_host, std::set<std::uint32_t> const& users) {
    auto const found = on_ranks(Group::threads(4), [&](Group const& group) {
      MovingRank rank(group, {.threads = 1, .placement_bytes_min = 0, .ranks_per_host = ranks_per_host}, {});
      bool const uses = users.contains(number(group.rank()));
      rank.train(12, 100, [&](std::int64_t) { return uses ? std::vector{key} : std::vector<Key>{}; });
      EXPECT_EQ(rank.store.rows_move(rank.table), ranks_per_host == 2);
      auto const row = rank.store.where(rank.table, key);
      rank.store.wait_barrier();
      return row;
    });
    return found.at(0);
  };
  std::uint32_t const home = number(owner(4, {}).home), other = (home / 2 * 2 + 2) % 4;  // the first of the other host
  EXPECT_EQ(owner(4, {other}).owner, Rank{home});
  EXPECT_EQ(owner(2, {other}).owner, Rank{other});
  // Three ranks use the row as much, two of them on the other host.
  EXPECT_EQ(number(owner(2, {home, other, other + 1}).owner) / 2, other / 2);
}

TEST(MovingRows, LateBatchesAreCounted) {
  for (int const window : {1, 4, 5, 16}) {
    auto const late = on_two_ranks([&](Group const& group) {
      MovingRank rank(
          group,
          {.threads = 1, .placement = PlacementPolicy::kAdaptive, .placement_window = window, .placement_bytes_min = 0},
          {});
      rank.train(20, 20, [&](std::int64_t) { return std::vector{key_of_home(0, 0), key_of_home(1, 0)}; });
      rank.store.wait_applied();
      return rank.store.stats().late_batches;
    });
    // Batches are prepared five steps ahead.
    for (auto const& [rank, batches] : late) EXPECT_EQ(batches > 0, window > 4) << window;
  }
}

// The one user of a row with a lossy codec becomes its owner, and adds the residual of its gradients.
TEST(MovingRows, RowsOfTablesWithCompressionMoveToo) {
  on_two_ranks([&](Group const& group) {
    MovingRank rank(group, {.codec = RowCodec::kInt8});
    bool const uses = group.rank() == Rank{1};
    rank.train(10, 100, [&](std::int64_t) { return uses ? std::vector{key_of_home(0, 0)} : std::vector<Key>{}; });
    EXPECT_EQ(rank.store.where(rank.table, key_of_home(0, 0)).owner, Rank{1});
    rank.store.wait_barrier();
    return 0;
  });
}

}  // namespace
}  // namespace gpups::test::moving_rows_test
