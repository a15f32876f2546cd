// SPDX-License-Identifier: Apache-2.0
// Bounded staleness with random batches: reads are bounded, no gradient is lost, and static owners give equal bits.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/cache/counting_rank.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test::random_staleness_test {
namespace {

// Each rank trains on batches of a few keys. What a read may be follows from the uses of earlier steps.
struct RandomRun {
  Device device{};
  int ranks = 3;
  PlacementPolicy policy = PlacementPolicy::kStatic;
  std::int64_t staleness = 3, lookahead = 5, steps = 40;
  std::uint64_t keys = 12;
  std::size_t parts = 1;
  bool in_order = true;  // batches are prepared in the order of their steps
  double replica_fraction = 1;
  TableOptions table{.expected_rows = 4096};
};

// Returns the entries of a rank's batch: few keys often, others rarely.
std::vector<Key> random_keys(RandomRun const& run, std::uint32_t rank, std::int64_t step) {
  Random random(static_cast<std::uint64_t>(step) * 64 + rank);
  std::vector<Key> keys;
  for (int i = 0; i < 6; ++i) {
    auto const u = uniform(random);
    keys.push_back(Key{static_cast<std::uint64_t>(u * u * static_cast<float>(run.keys))});
  }
  return keys;
}

void train_randomly(std::vector<Group> const& groups, RandomRun const& run) {
  // By step: how often batches of earlier steps use each key, of all ranks.
  std::vector<std::map<Key, float>> uses_before(1);
  for (std::int64_t step = 0; step < run.steps; ++step) {
    auto uses = uses_before.back();
    for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(run.ranks); ++q) {
      for (Key const key : random_keys(run, q, step)) ++uses[key];
    }
    uses_before.push_back(std::move(uses));
  }
  auto const uses = [&](Key key, std::int64_t step) {
    auto const& before = uses_before[static_cast<std::size_t>(std::max<std::int64_t>(step, 0))];
    auto const found = before.find(key);
    return found == before.end() ? 0 : found->second;
  };
  run_ranks(groups, [&](Group const& group) {
    CountingRank rank(group,
                      {.device = run.device,
                       .replica_fraction = run.replica_fraction,
                       .placement = run.policy,
                       .staleness = run.staleness},
                      run.table);
    std::map<std::int64_t, PreparedBatch> ahead;
    rank.store.synchronize(Clock{run.steps - 1});
    for (std::int64_t step = 0, prepared = 0; step < run.steps; ++step) {
      std::vector<std::int64_t> next;
      auto const end = std::min(run.steps, step / (run.in_order ? 1 : 4) * (run.in_order ? 1 : 4) + run.lookahead + 1);
      for (; prepared < end; ++prepared) next.push_back(prepared);
      if (!run.in_order) std::reverse(next.begin(), next.end());
      for (auto const clock : next) {
        ahead[clock] = rank.prepare(clock, random_keys(run, number(group.rank()), clock), 1, run.parts);
      }
      for (auto const& [key, counter] : rank.train(ahead.extract(step).mapped())) {
        EXPECT_LE(counter, uses(key, step)) << number(key) << " at " << step;
        if (!run.in_order) continue;
        // A gradient waits for `staleness` steps at most, and the replica is as old at most.
        EXPECT_GE(counter, uses(key, step - 2 * run.staleness)) << number(key) << " at " << step;
      }
    }
    rank.store.wait_barrier();
    std::vector<Key> all;
    std::vector<float> expected;
    for (auto const& [key, count] : uses_before.back()) {
      all.push_back(key);
      expected.push_back(count);
    }
    EXPECT_EQ(rank.lookup(all), expected) << "a gradient was lost or added twice";
    bool const has_leases = run.in_order || run.staleness > 4;
    EXPECT_TRUE(!has_leases || rank.store.stats().leased_keys > 0);
    EXPECT_LE(rank.store.stats().leased_steps_max, static_cast<std::uint64_t>(run.staleness));
    rank.store.wait_barrier();
  });
}

TEST(RandomStaleness, ReadsAreBoundedAndNoGradientIsLost) {
  for (Device const device : devices()) {
    for (int const ranks : {2, 4}) {
      for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kAdaptive, PlacementPolicy::kRandom}) {
        for (std::int64_t const lookahead : {0, 5}) {
          SCOPED_TRACE(testing::Message() << to_string(device) << ", " << ranks << " ranks, " << name_of(policy)
                                          << ", lookahead " << lookahead);
          train_randomly(Group::threads(ranks),
                         {.device = device, .ranks = ranks, .policy = policy, .lookahead = lookahead});
        }
      }
    }
  }
}

TEST(RandomStaleness, PartsOfOneTableShareTheirRows) {
  for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kRandom}) {
    train_randomly(Group::threads(3), {.policy = policy, .parts = 3});
  }
}

TEST(RandomStaleness, BatchesMayBePreparedInAnotherOrder) {
  for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kRandom}) {
    train_randomly(Group::threads(3), {.policy = policy, .staleness = 7, .keys = 60, .in_order = false});
  }
}

// Most replicas are dropped before they are used again, but never one that a lease relies on.
TEST(RandomStaleness, SmallBudgetsOfReplicasAreKept) {
  for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kAdaptive, PlacementPolicy::kRandom}) {
    for (bool const in_order : {true, false}) {
      train_randomly(Group::threads(3), {.policy = policy,
                                         .staleness = 7,
                                         .steps = 120,
                                         .keys = 300,
                                         .in_order = in_order,
                                         .replica_fraction = .01,
                                         .table = {.expected_rows = 300}});
    }
  }
}

// Batches are planned so far ahead that leases have ended in the plan when their rows leave.
TEST(RandomStaleness, ShortLeasesAreKeptWhenRowsLeave) {
  for (auto const policy : {PlacementPolicy::kRelocate, PlacementPolicy::kAdaptive, PlacementPolicy::kRandom}) {
    for (std::int64_t const staleness : {1, 2}) {
      train_randomly(Group::threads(3), {.policy = policy,
                                         .staleness = staleness,
                                         .lookahead = 8,
                                         .steps = 120,
                                         .keys = 100,
                                         .replica_fraction = .01,
                                         .table = {.expected_rows = 300}});
    }
  }
}

TEST(RandomStaleness, RowsMayBeCompressedOrShort) {
  RowCompression const half{.codec = RowCodec::kHalf};
  for (auto const policy : {PlacementPolicy::kStatic, PlacementPolicy::kAdaptive, PlacementPolicy::kRandom}) {
    train_randomly(Group::threads(3),
                   {.policy = policy, .table = {.expected_rows = 4096, .gradient_compression = half}});
    train_randomly(Group::threads(3),
                   {.policy = policy, .table = {.expected_rows = 4096, .refresh_compression = half}});
  }
  train_randomly(Group::threads(3),
                 {.policy = PlacementPolicy::kRandom, .table = {.expected_rows = 4096, .value_type = DataType::kHalf}});
}

TEST(RandomStaleness, ReadsAreBoundedOnSlowNetworks) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    train_randomly(Group::simulated(3, {.seed = seed, .delay_ms_max = 20}),
                   {.policy = seed % 2 == 0 ? PlacementPolicy::kRandom : PlacementPolicy::kAdaptive,
                    .staleness = static_cast<std::int64_t>(1 + seed % 5),
                    .lookahead = 4,
                    .in_order = seed % 3 > 0});
  }
}

// With owners at their homes, leases depend on the batches alone, so a run has the same bits on every network.
TEST(RandomStaleness, StaticOwnersHaveTheSameBitsOnEveryNetwork) {
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

}  // namespace
}  // namespace gpups::test::random_staleness_test
