// SPDX-License-Identifier: Apache-2.0
// What a step costs the host if rows move: waits for streams, and launches, whatever the numbers of keys, tables and
// ranks.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "gpups/store.hpp"
#include "tests/cache/cluster.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test::control_plane_test {
namespace {

struct Shape {
  Device device;
  int ranks;
  std::uint32_t tables;
  std::size_t keys;  // of a rank and table in a step
  std::int64_t staleness = 0;
};

struct StepCosts {
  std::uint64_t waits = 0, launches = 0;
};

constexpr std::int64_t kLookahead = 4, kWarmUp = 12, kSteps = 6;
constexpr std::size_t kDim = 8;  // wide enough for a move to take fewer bytes than a value and a gradient

// Returns the keys of a rank in a step: some that all ranks use, some that it uses for three steps, before another rank
// does, so that they move and return, and some that are new.
std::vector<Key> keys_of_step(Shape const& shape, std::uint64_t rank, std::uint64_t step) {
  auto const ranks = static_cast<std::uint64_t>(shape.ranks);
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < shape.keys; ++i) {
    std::uint64_t const in_turn = 1000 + i * ranks + (rank + step / 3) % ranks;
    keys.push_back(Key{i % 4 < 2 ? i : i % 4 == 2 ? in_turn : 1'000'000 + (step * ranks + rank) * shape.keys + i});
  }
  return keys;
}

// One rank: trains steps, and counts what each costs.
class CostedRank {
 public:
  CostedRank(Group const& group, Shape const& shape)
      : shape_(shape),
        store_(group, {.device = shape.device,
                       .threads = 1,
                       .replica_fraction = 1,
                       .placement = PlacementPolicy::kAdaptive,
                       .placement_bytes_min = 0,
                       .staleness = shape.staleness,
                       .key_format = KeyFormat::kPlain}),
        stream_(store_.make_stream()) {
    std::vector<Key> all;
    for (std::int64_t step = 0; step < kWarmUp + kSteps + kLookahead; ++step) {
      auto const keys = keys_of_step(shape, number(store_.rank()), static_cast<std::uint64_t>(step));
      all.insert(all.end(), keys.begin(), keys.end());
    }
    keys_ = to_device(stream_, all);
    for (std::uint32_t t = 0; t < shape.tables; ++t) {
      tables_.push_back(
          store_.add_table({.name = fmt::format("table {}", t), .dim = kDim, .expected_rows = std::size_t{1} << 14}));
      sources_.emplace_back(shape.device, shape.keys, kDim);
      memory::fill_bytes(stream_, sources_.back().view().data(), 0, sources_.back().view().flat().bytes());
      gradients_.push_back({.sources = sources_.back()});
    }
    for (std::int64_t step = 0; step < kLookahead; ++step) prepare();
  }

  // Returns the costs of each step, with those of preparing a batch.
  std::vector<StepCosts> train() {
    for (std::int64_t step = 0; step < kWarmUp; ++step) {
      train_step();
      // So that each of the steps that are counted takes in the batches of one step.
      if (step >= kWarmUp - kLookahead) wait_stats();
    }
    std::vector<StepCosts> costs;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      auto const before = wait_stats();
      train_step();
      auto const after = wait_stats();
      costs.push_back({after.stream_waits - before.stream_waits, after.launches - before.launches});
    }
    EXPECT_GT(store_.stats().moved_rows, 0U);
    store_.wait_barrier();
    return costs;
  }

 private:
  void prepare() {
    auto const keys = keys_.view().slice(static_cast<std::size_t>(next_) * shape_.keys, shape_.keys);
    std::vector<TableBatch> parts;
    for (TableId const table : tables_) parts.push_back({.table = table, .keys = keys});
    ahead_.push_back(store_.prepare(stream_, Clock{next_++}, parts, 1));
  }
  void train_step() {
    auto const batch = ahead_.front();
    ahead_.pop_front();
    prepare();
    store_.wait_ready(batch);
    store_.push(stream_, batch, gradients_);
    store_.advance_clock();
  }
  Stats wait_stats() {
    store_.wait_applied();
    store_.wait_barrier();
    auto const stats = store_.stats();
    store_.wait_barrier();
    return stats;
  }

  Shape shape_;
  Store store_;
  Stream stream_;
  Array<Key> keys_;
  std::vector<TableId> tables_;
  std::vector<Matrix<float>> sources_;
  std::vector<TableGradients> gradients_;
  std::deque<PreparedBatch> ahead_;
  std::int64_t next_ = 0;
};

// Returns the least costs of a step, in which no index grows, of the rank that has most.
StepCosts costs_of(Shape const& shape) {
  std::vector<StepCosts> of_ranks(static_cast<std::size_t>(shape.ranks));
  run_ranks(Group::threads(shape.ranks), [&](Group const& group) {
    auto const costs = CostedRank(group, shape).train();
    auto& least = of_ranks[number(group.rank())] = costs.front();
    for (auto const& [waits, launches] : costs) {
      least = {std::min(least.waits, waits), std::min(least.launches, launches)};
    }
  });
  StepCosts most;
  for (auto const& [waits, launches] : of_ranks) {
    most = {std::max(most.waits, waits), std::max(most.launches, launches)};
  }
  return most;
}

class ControlPlane : public OnDevice {};

TEST_P(ControlPlane, NothingPerKeyOnTheHost) {
  // At least one wait is that of preparing a batch. Without moves and new keys, fewer launches are needed.
  constexpr std::uint64_t kWaitsMax = 7, kLaunchesMax = 135;
  int const ranks = GetParam().is_host() ? 8 : 3;
  auto const few = costs_of({GetParam(), 2, 4, 8}), many_tables = costs_of({GetParam(), 2, 26, 8});
  EXPECT_EQ(few.launches, many_tables.launches);
  for (auto const& costs : {few, many_tables, costs_of({GetParam(), ranks, 4, 8}), costs_of({GetParam(), 2, 4, 256})}) {
    EXPECT_LE(costs.waits, kWaitsMax);
    EXPECT_LE(costs.launches, kLaunchesMax);
  }
}

// Batches are divided into rows that are announced and rows that are read as they are, which takes one wait more.
TEST_P(ControlPlane, NothingPerKeyOnTheHostWithStaleness) {
  constexpr std::uint64_t kWaitsMax = 8, kLaunchesMax = 190;
  constexpr std::int64_t kStaleness = 4;
  int const ranks = GetParam().is_host() ? 8 : 3;
  for (auto const& costs : {costs_of({GetParam(), 2, 4, 8, kStaleness}), costs_of({GetParam(), 2, 26, 8, kStaleness}),
                            costs_of({GetParam(), ranks, 4, 8, kStaleness})}) {
    EXPECT_LE(costs.waits, kWaitsMax);
    EXPECT_LE(costs.launches, kLaunchesMax);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ControlPlane, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::control_plane_test
