// SPDX-License-Identifier: Apache-2.0
// Bounded staleness: how old reads are, what they save, and that no gradient is lost.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/hash.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test {
namespace {

// Returns the n-th key with this home, of two ranks.
Key key_of_home(std::uint32_t home, int n) {
  for (std::uint64_t key = 0;; ++key) {
    if (kernels::home_of(Key{key}, 2) == home && n-- == 0) return Key{key};
  }
}

constexpr std::size_t kDim = 8;  // wide enough for a move to take fewer bytes than a value and a gradient

// A store with a table of counters: every entry of a batch adds 1 to its row, and all numbers are exact.
class CountingRank {
 public:
  CountingRank(Group const& group, StoreOptions options) : store(group, with_defaults(options)) {
    table = store.add_table({.name = "counters",
                             .dim = kDim,
                             .initializer = {Initializer::Kind::kConstant, 0},
                             .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
                             .expected_rows = 4096});
    stream = store.make_stream();
  }

  PreparedBatch prepare(std::int64_t step, std::vector<Key> const& keys, std::size_t samples = 1) {
    auto const keys_there = to_device(stream, keys);
    TableBatch const part{.table = table, .keys = keys_there};
    return store.prepare(stream, Clock{step}, {&part, 1}, samples);
  }

  // Trains a step. Returns the counters that it reads, by key.
  std::map<Key, float> train(PreparedBatch const& batch, float gradient = -1) {
    Device const device = stream.device();
    store.wait_ready(batch);
    Matrix<float> const rows(device, batch.rows(0), kDim);
    MatrixView<float> const view = rows;
    store.pull(stream, batch, {&view, 1});
    auto const values = moved<float const>(stream, Device::host(), rows.view());
    auto const keys = to_host(stream, batch.keys(0));
    std::map<Key, float> read;
    for (std::size_t row = 0; row < batch.rows(0); ++row) read[keys[row]] = values.row(row)[0];
    // The step divides by the samples of all ranks, one for each.
    Matrix<float> const of_entries(Device::host(), batch.entries(0), kDim);
    std::fill_n(of_entries.view().data(), of_entries.view().flat().size(),
                gradient * static_cast<float>(store.ranks()));
    auto const sources = moved<float const>(stream, device, of_entries.view());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    store.advance_clock();
    return read;
  }

  // Ends training: no gradient waits afterwards.
  void flush() {
    store.flush_residuals();
    store.advance_clock();
    store.wait_barrier();
  }

  std::vector<float> lookup(std::vector<Key> const& keys) {
    Matrix<float> const out(stream.device(), keys.size(), kDim);
    store.lookup(stream, table, to_device(stream, keys), out, {});
    auto const values = moved<float const>(stream, Device::host(), out.view());
    std::vector<float> counters;
    for (std::size_t i = 0; i < keys.size(); ++i) counters.push_back(values.row(i)[0]);
    return counters;
  }

  Store store;
  TableId table{};
  Stream stream{Device::host(), 1};  // of the store's device

 private:
  static StoreOptions with_defaults(StoreOptions options) {
    options.threads = 1;
    options.replica_fraction = 1;
    return options;
  }
};

TEST(Staleness, ReplicaIsReadForSStepsAndThenRefreshed) {
  constexpr std::int64_t kStaleness = 3;
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.staleness = kStaleness});
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
    CountingRank rank(group, {.staleness = kStaleness});
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

// Each rank trains on batches of a few keys. What a read may be follows from the uses of earlier steps.
struct RandomRun {
  Device device;
  int ranks;
  PlacementPolicy policy;
  std::int64_t staleness, lookahead;
};

void train_randomly(std::vector<Group> const& groups, RandomRun const& run) {
  constexpr std::int64_t kSteps = 40;
  constexpr std::uint64_t kKeys = 12;
  auto const keys_of = [&](std::uint32_t rank, std::int64_t step) {
    Random random(static_cast<std::uint64_t>(step) * 64 + rank);
    std::vector<Key> keys;
    for (int i = 0; i < 6; ++i) {
      auto const u = uniform(random);
      keys.push_back(Key{static_cast<std::uint64_t>(u * u * static_cast<float>(kKeys))});
    }
    return keys;
  };
  // How often batches of steps before `step` use a key, of all ranks.
  auto const uses_before = [&](Key key, std::int64_t step) {
    std::int64_t uses = 0;
    for (std::int64_t s = 0; s < step; ++s) {
      for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(run.ranks); ++q) {
        auto const keys = keys_of(q, s);
        uses += std::count(keys.begin(), keys.end(), key);
      }
    }
    return static_cast<float>(uses);
  };
  run_ranks(groups, [&](Group const& group) {
    CountingRank rank(group, {.device = run.device, .placement = run.policy, .staleness = run.staleness});
    std::deque<PreparedBatch> ahead;
    std::int64_t prepared = 0;
    rank.store.synchronize(Clock{kSteps - 1});
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (; prepared < std::min(kSteps, step + run.lookahead + 1); ++prepared) {
        ahead.push_back(rank.prepare(prepared, keys_of(number(group.rank()), prepared)));
      }
      for (auto const& [key, counter] : rank.train(ahead.front())) {
        EXPECT_LE(counter, uses_before(key, step)) << number(key) << " at " << step;
        // A gradient waits for `staleness` steps at most, and the replica is as old at most.
        EXPECT_GE(counter, uses_before(key, step - 2 * run.staleness)) << number(key) << " at " << step;
      }
      ahead.pop_front();
    }
    rank.store.wait_barrier();
    std::vector<Key> all;
    std::vector<float> uses;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      all.push_back(Key{key});
      uses.push_back(uses_before(Key{key}, kSteps));
    }
    EXPECT_EQ(rank.lookup(all), uses) << "a gradient was lost or added twice";
    EXPECT_GT(rank.store.stats().leased_keys, 0U);
    EXPECT_LE(rank.store.stats().leased_steps_max, static_cast<std::uint64_t>(run.staleness));
    rank.store.wait_barrier();
  });
}

TEST(Staleness, ReadsAreBoundedAndNoGradientIsLost) {
  for (Device const device : devices()) {
    for (int const ranks : {2, 4}) {
      for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kAdaptive, PlacementPolicy::kRandom}) {
        for (std::int64_t const lookahead : {0, 5}) {
          SCOPED_TRACE(testing::Message() << to_string(device) << ", " << ranks << " ranks, " << name_of(policy)
                                          << ", lookahead " << lookahead);
          train_randomly(Group::threads(ranks), {device, ranks, policy, 3, lookahead});
        }
      }
    }
  }
}

// With owners at their homes, leases depend on the batches alone, so a run has the same bits on every network.
TEST(Staleness, StaticOwnersHaveTheSameBitsOnEveryNetwork) {
  auto const hash_of = [](std::vector<Group> const& groups) {
    std::mutex mutex;
    std::uint64_t hash = 0;
    run_ranks(groups, [&](Group const& group) {
      Store store(group, {.threads = 1, .replica_fraction = 1, .staleness = 4});
      for (auto const kind : {Optimizer::Kind::kAdagrad, Optimizer::Kind::kAdam}) {
        store.add_table({.name = fmt::format("{}", static_cast<int>(kind)),
                         .dim = 3,
                         .optimizer = {.kind = kind, .learning_rate = .1F},
                         .expected_rows = 4096,
                         .admission_count = kind == Optimizer::Kind::kAdam ? 3U : 1U});
      }
      Stream stream = store.make_stream();
      std::deque<PreparedBatch> ahead;
      for (std::int64_t step = 0, prepared = 0; step < 30; ++step) {
        for (; prepared < std::min<std::int64_t>(30, step + 4); ++prepared) {
          Random random(static_cast<std::uint64_t>(prepared) * 64 + number(group.rank()));
          std::vector<Key> keys[2];
          std::vector<TableBatch> parts;
          for (std::uint32_t t = 0; t < 2; ++t) {
            for (int i = 0; i < 6; ++i) keys[t].push_back(Key{static_cast<std::uint64_t>(10 * uniform(random))});
            parts.push_back({.table = TableId{t}, .keys = View<Key const>(keys[t])});
          }
          ahead.push_back(store.prepare(stream, Clock{prepared}, parts, 6));
        }
        run_value_dependent_step(store, stream, ahead.front());
        ahead.pop_front();
      }
      auto const mine = store.table_hash();
      std::lock_guard const lock(mutex);
      hash = mine;
    });
    return hash;
  };
  auto const expected = hash_of(Group::threads(3));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(hash_of(Group::simulated(3, {.seed = seed, .delay_ms_max = 20})), expected) << "seed " << seed;
  }
}

TEST(Staleness, ReadsAreBoundedOnSlowNetworks) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    auto const policy = seed % 2 == 0 ? PlacementPolicy::kRandom : PlacementPolicy::kAdaptive;
    auto const staleness = static_cast<std::int64_t>(1 + seed % 5);
    train_randomly(Group::simulated(3, {.seed = seed, .delay_ms_max = 20}), {Device::host(), 3, policy, staleness, 4});
  }
}

// A row moves to the only rank that uses it, and the rank sees its own updates at once.
TEST(Staleness, OwnerOfAMovedRowReadsItsOwnUpdates) {
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.placement = PlacementPolicy::kAdaptive, .staleness = 5});
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
    CountingRank rank(group, {.staleness = 20});
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
  EXPECT_THROW(run_ranks(Group::threads(2),
                         [](Group const& group) {
                           CountingRank rank(group, {.staleness = 1 + std::int64_t{number(group.rank())}});
                           rank.store.wait_barrier();
                         }),
               PeerError);
}

TEST(Staleness, RejectedStepLosesOnlyItsOwnGradients) {
  Key const key = key_of_home(0, 0);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.staleness = 2});
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
    CountingRank rank(group, {.staleness = 10});
    for (std::int64_t step = 0; step < 4; ++step) rank.train(rank.prepare(step, keys));
    rank.store.save(folder.path() / "checkpoint", {});
    rank.store.wait_barrier();
  });
  for (int const ranks : {1, 2, 3}) {
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      CountingRank rank(group, {.staleness = 10});
      rank.store.restore(folder.path() / "checkpoint");
      // As many samples as the two ranks had.
      rank.train(rank.prepare(number(rank.store.clock()), {}, group.rank() == Rank{0} ? 2 : 0));
      EXPECT_EQ(rank.lookup(keys), std::vector<float>(3, 8)) << ranks << " ranks";
      rank.store.wait_barrier();
    });
  }
}

TEST(Staleness, ErasedRowsHaveNoGradientsThatWait) {
  Key const erased = key_of_home(0, 0), kept = key_of_home(0, 1);
  run_ranks(Group::threads(2), [&](Group const& group) {
    CountingRank rank(group, {.staleness = 10});
    for (std::int64_t step = 0; step < 4; ++step) rank.train(rank.prepare(step, {erased, kept}));
    rank.store.erase(rank.stream, rank.table, View<Key const>(&erased, 1, Device::host()));
    rank.flush();
    EXPECT_EQ(rank.lookup({erased, kept}), (std::vector<float>{0, 8}));
    EXPECT_EQ(rank.store.size(rank.table), 1U);
    rank.store.wait_barrier();
  });
}

}  // namespace
}  // namespace gpups::test
