// SPDX-License-Identifier: Apache-2.0
// Bounded staleness: how old reads are, when gradients are sent, and calls between steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/cache/counting_rank.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::staleness_test {
namespace {

TEST(Staleness, ReplicaIsReadForSStepsAndThenRefreshed) {
  constexpr std::int64_t kStaleness = 3;
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = kStaleness});
    bool const is_owner = group.rank() == Rank{0};
    std::vector<float> read;
    for (std::int64_t step = 0; step < 12; ++step) {
      // The reader only reads: its gradients are 0.
      read.push_back(rank.train(rank.prepare(step, {key}), is_owner ? -1.0F : 0.0F).at(key));
    }
    auto const refreshed = [=](std::int64_t step) { return static_cast<float>(is_owner ? step : step / 4 * 4); };
    for (std::int64_t step = 0; step < 12; ++step) EXPECT_EQ(read[static_cast<std::size_t>(step)], refreshed(step));
    rank.store.wait_barrier();
    auto const stats = rank.store.stats();
    EXPECT_EQ(stats.leased_keys, is_owner ? 0U : 9U);
    EXPECT_EQ(stats.leased_steps, is_owner ? 0U : 3U * (1 + 2 + 3));
    EXPECT_EQ(stats.leased_steps_max, is_owner ? 0U : 3U);
    rank.store.wait_barrier();
  });
}

TEST(Staleness, GradientsWaitForSStepsAtMost) {
  constexpr std::int64_t kStaleness = 3;
  Key const key = key_of_home(0, 0), other = key_of_home(1, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = kStaleness});
    bool const is_owner = group.rank() == Rank{0};
    for (std::int64_t step = 0; step < 12; ++step) {
      // The reader adds 1 in steps 0, 1 and 2. Its lease ends before step 4.
      bool const uses = !is_owner && step < 3;
      rank.train(rank.prepare(step, {uses ? key : other}));
      rank.store.wait_barrier();
      float const waits = step == 1 || step == 2 || step == 3 ? static_cast<float>(std::min<std::int64_t>(step, 2)) : 0;
      EXPECT_EQ(rank.lookup({key})[0], static_cast<float>(std::min<std::int64_t>(step + 1, 3)) - waits) << step;
      rank.store.wait_barrier();
    }
  });
}

TEST(Staleness, LocalizedRowsGetTheGradientsThatWait) {
  std::vector<Key> const keys{key_of_home(0, 0), key_of_home(1, 0)};
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 10});
    for (std::int64_t step = 0; step < 4; ++step) rank.train(rank.prepare(step, keys));
    std::vector<Key> const mine{keys[1 - number(group.rank())]};  // of the other home
    rank.store.localize(rank.stream, rank.table, View<Key const>(mine));
    for (std::int64_t step = 4; step < 8; ++step) rank.train(rank.prepare(step, keys));
    rank.flush();
    EXPECT_EQ(rank.lookup(keys), (std::vector<float>{16, 16}));
    rank.store.wait_barrier();
  });
}

// The flush is in step 3, when later batches are prepared and have leases.
TEST(Staleness, StepWithoutABatchFlushesWhatWaits) {
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 4});
    std::map<std::int64_t, PreparedBatch> ahead;
    for (std::int64_t const step : {0, 1, 2, 4, 5, 6}) ahead[step] = rank.prepare(step, {key});
    for (std::int64_t step = 0; step < 7; ++step) {
      if (step == 3) {
        rank.store.flush_residuals();
        rank.store.flush_residuals();  // once is enough
        rank.store.advance_clock();
        rank.store.wait_barrier();
        EXPECT_EQ(rank.lookup({key})[0], 6);
        rank.store.wait_barrier();
      } else {
        rank.train(ahead.extract(step).mapped());
      }
    }
    rank.flush();
    EXPECT_EQ(rank.lookup({key})[0], 12);
    EXPECT_THROW(rank.store.expire(rank.table, 4), Error) << "not above the staleness";
    rank.store.wait_barrier();
  });
}

// A row moves to the only rank that uses it, and the rank sees its own updates at once.
TEST(Staleness, OwnerOfAMovedRowReadsItsOwnUpdates) {
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .placement = PlacementPolicy::kAdaptive, .staleness = 5});
    bool const is_home = group.rank() == Rank{0};
    std::deque<PreparedBatch> ahead;
    for (std::int64_t step = 0; step < 24; ++step) {
      while (std::ssize(ahead) < 5) {
        auto const next = step + std::ssize(ahead);
        ahead.push_back(rank.prepare(next, is_home ? std::vector<Key>{} : std::vector<Key>{key}));
      }
      auto const read = rank.train(ahead.front());
      ahead.pop_front();
      if (is_home || step < 10) continue;
      EXPECT_EQ(read.at(key), static_cast<float>(step));
    }
    rank.store.wait_barrier();
    EXPECT_EQ(rank.store.where(rank.table, key).owner, Rank{1});
    EXPECT_EQ(rank.store.stats().leased_keys > 0, !is_home);
    while (!ahead.empty()) {
      rank.train(ahead.front());
      ahead.pop_front();
    }
    rank.store.wait_barrier();
  });
}

TEST(Staleness, SynchronizedBatchReadsFreshRowsAndSendsAllGradients) {
  Key const key = key_of_home(0, 0), other = key_of_home(0, 1);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 20});
    bool const is_home = group.rank() == Rank{0};
    rank.store.synchronize(Clock{6});
    for (std::int64_t step = 0; step < 7; ++step) {
      auto const keys = step == 6 ? std::vector<Key>{key} : std::vector<Key>{key, other};
      auto const read = rank.train(rank.prepare(step, keys));
      if (is_home) continue;
      EXPECT_EQ(read.at(key), step == 6 ? 7 : 0) << "six steps of rank 0 and one of this rank";
    }
    rank.store.wait_barrier();
    EXPECT_EQ(rank.lookup({key, other}), (std::vector<float>{14, 12}));
    EXPECT_THROW(rank.store.synchronize(Clock{6}), Error) << "the step has ended";
    rank.store.wait_barrier();
  });
}

TEST(Staleness, OptionsAreChecked) {
  EXPECT_THROW(Store(Group::alone(), {.staleness = -1}), Error);
  EXPECT_THROW(Store(Group::alone(), {.staleness = 65537}), Error);
  EXPECT_THROW(Store(Group::alone(), {.replica_fraction = 0, .staleness = 1}), Error);
  EXPECT_THROW(run_ranks(Group::threads(2),
                         [](Group const& group) {
                           CountingRank rank(
                               group, {.replica_fraction = 1, .staleness = 1 + std::int64_t{number(group.rank())}});
                           rank.store.wait_barrier();
                         }),
               PeerError);
}

TEST(Staleness, RejectedStepLosesOnlyItsOwnGradients) {
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 2});
    bool const is_owner = group.rank() == Rank{0};
    std::vector<Key> const keys = is_owner ? std::vector<Key>{} : std::vector<Key>{key};
    // The replica is refreshed in steps 0, 3 and 6. Step 3 is rejected, and with it what has waited since step 1.
    for (std::int64_t step = 0; step < 8; ++step) {
      bool const is_bad = step == 3 && !is_owner;
      try {
        rank.train(rank.prepare(step, keys), is_bad ? std::numeric_limits<float>::quiet_NaN() : -1.0F);
        rank.store.wait_applied();
        EXPECT_NE(step, 3);
      } catch (GradientError const&) {
        EXPECT_EQ(step, 3);
      }
      rank.store.wait_barrier();
    }
    rank.flush();
    EXPECT_EQ(rank.lookup({key})[0], 7) << "seven steps were applied";
    rank.store.wait_barrier();
  });
}

TEST(Staleness, CheckpointHasGradientsThatWait) {
  TemporaryFolder const folder;
  std::vector<Key> const keys{key_of_home(0, 0), key_of_home(0, 1), key_of_home(1, 0)};
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 10});
    for (std::int64_t step = 0; step < 4; ++step) rank.train(rank.prepare(step, keys));
    rank.store.save(folder.path() / "checkpoint", {});
    rank.store.wait_barrier();
  });
  for (int const ranks : {1, 2, 3}) {
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      CountingRank rank(group, {.replica_fraction = 1, .staleness = 10});
      rank.store.restore(folder.path() / "checkpoint");
      // As many samples as the two ranks had.
      rank.train(rank.prepare(number(rank.store.clock()), {}, group.rank() == Rank{0} ? 2 : 0));
      EXPECT_EQ(rank.lookup(keys), std::vector<float>(3, 8)) << ranks << " ranks";
      rank.store.wait_barrier();
    });
  }
}

// One update of the sum, not two: this matters for Adagrad.
TEST(Staleness, RestoredGradientsAreAddedToThoseOfTheFirstStep) {
  TemporaryFolder const folder;
  std::vector<Key> const keys{key_of_home(0, 0), key_of_home(0, 1), key_of_home(1, 0)};
  auto const make = [](Group const& group) {
    Store store(group, {.threads = 1, .replica_fraction = 1, .staleness = 10});
    store.add_table({.name = "t", .dim = 3, .optimizer = {.kind = Optimizer::Kind::kAdagrad}, .expected_rows = 4096});
    return store;
  };
  auto const part = [](std::vector<Key> const& of_rank) {
    return TableBatch{.table = TableId{0}, .keys = View<Key const>(of_rank)};
  };
  run_ranks(Group::threads(2), [&](Group const& group) {
    Store store = make(group);
    Stream stream = store.make_stream();
    TableBatch const batch = part(keys);
    for (int step = 0; step < 4; ++step) run_value_dependent_step(store, stream, {&batch, 1}, 1);
    store.save(folder.path() / "checkpoint", {});
  });
  std::map<int, std::uint64_t> hashes;
  for (int const ranks : {1, 2, 3}) {
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      Store store = make(group);
      store.restore(folder.path() / "checkpoint");
      Stream stream = store.make_stream();
      bool const is_first = group.rank() == Rank{0};
      std::vector<Key> const mine = is_first ? keys : std::vector<Key>{};
      TableBatch const batch = part(mine);
      run_value_dependent_step(store, stream, {&batch, 1}, is_first ? 2 : 0);
      auto const hash = store.table_hash();
      if (is_first) hashes[ranks] = hash;
    });
  }
  EXPECT_EQ(hashes[1], hashes[2]);
  EXPECT_EQ(hashes[3], hashes[2]);
}

TEST(Staleness, ErasedRowsHaveNoGradientsThatWait) {
  Key const erased = key_of_home(0, 0), kept = key_of_home(0, 1);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.replica_fraction = 1, .staleness = 10});
    for (std::int64_t step = 0; step < 4; ++step) rank.train(rank.prepare(step, {erased, kept}));
    rank.store.erase(rank.stream, rank.table, View<Key const>(&erased, 1, Device::host()));
    rank.flush();
    EXPECT_EQ(rank.lookup({erased, kept}), (std::vector<float>{0, 8}));
    EXPECT_EQ(rank.store.size(rank.table), 1U);
    rank.store.wait_barrier();
  });
}

}  // namespace
}  // namespace gpups::test::staleness_test
