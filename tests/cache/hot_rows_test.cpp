// SPDX-License-Identifier: Apache-2.0
// The most used rows of homes, with and without rows that move, compared with naive counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::hot_rows_test {
namespace {

constexpr std::int64_t kSteps = 24, kWindow = 16;
constexpr std::uint64_t kKeys = 24;  // of each table
constexpr std::uint32_t kTables = 2;
constexpr std::size_t kMost = Store::kHotRowsMax;
static_assert(kTables * kKeys < kMost);

// Uses by rank.
using Uses = std::vector<std::uint32_t>;
// Rows by table and key.
using Rows = std::map<std::pair<std::uint32_t, std::uint64_t>, Uses>;

// Returns the keys of a part of a batch, some of them twice. Part 2 is a second one of table 0. The result depends on
// the arguments alone.
std::vector<Key> keys_of(std::int64_t step, std::uint32_t rank, std::uint32_t part) {
  std::mt19937 random(static_cast<std::uint32_t>(step * 100 + rank * 10 + part));
  std::vector<Key> keys;
  for (int i = 0; i < (part == 2 ? 4 : 12); ++i) keys.push_back(Key{random() % (1 + random() % kKeys)});
  return keys;
}
bool has_batch(std::int64_t step, std::uint32_t rank) { return (step + rank) % 7 != 0; }

// Returns the uses, in steps `first` to `end` - 1, of the rows of all homes that step `first` uses.
Rows naive_uses(std::uint32_t ranks, std::int64_t first, std::int64_t end) {
  Rows rows;
  for (std::int64_t step = first; step < end; ++step) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (!has_batch(step, rank)) continue;
      std::set<std::pair<std::uint32_t, std::uint64_t>> used;
      for (std::uint32_t part = 0; part <= kTables; ++part) {
        for (Key const key : keys_of(step, rank, part)) used.insert({part % kTables, number(key)});
      }
      for (auto const& row : used) {
        if (step == first) rows.try_emplace(row, Uses(ranks, 0));
        auto const found = rows.find(row);
        if (found != rows.end()) ++found->second[rank];
      }
    }
  }
  return rows;
}

// A store of two tables, of which the first has narrow rows, and batches that are prepared ahead.
class Trainer {
 public:
  Trainer(Group const& group, StoreOptions const& options) : store(group, options) {
    for (std::uint32_t t = 0; t < kTables; ++t) {
      store.add_table({.name = t == 0 ? "narrow" : "wide",
                       .dim = t == 0 ? 4U : 64U,
                       .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.5F},
                       .admission_count = 1 + 3 * t});
    }
    stream = store.make_stream();
  }

  // Trains steps up to `last`; the batches of the next `lookahead` steps are prepared before a step ends, and after the
  // round of the step before.
  void train(std::int64_t last, std::int64_t lookahead) {
    for (std::int64_t step = number(store.clock()); step < last; ++step) {
      store.wait_applied();
      for (; prepared <= std::min(kSteps - 1, step + lookahead); ++prepared) {
        if (has_batch(prepared, number(store.rank()))) prepare(prepared);
      }
      auto const batch = ahead.find(step);
      if (batch != ahead.end()) {
        store.wait_ready(batch->second);
        push(batch->second);
        ahead.erase(batch);
      }
      store.advance_clock();
    }
  }

  // Returns the hot rows of this home, in their order.
  std::vector<HotRow> hottest() {
    auto rows = store.hottest_rows(kMost);
    auto const order = [](HotRow const& a, HotRow const& b) {
      return std::tuple(b.all_uses(), a.table, a.key) < std::tuple(a.all_uses(), b.table, b.key);
    };
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), order));
    for (auto const& row : rows) EXPECT_EQ(row.placement.home, store.rank());
    return rows;
  }

  Store store;
  Stream stream{Device::host(), 1};
  std::map<std::int64_t, PreparedBatch> ahead;
  std::int64_t prepared = 0;

 private:
  void prepare(std::int64_t step) {
    std::deque<Array<Key>> keys;
    std::vector<TableBatch> parts;
    for (std::uint32_t part = 0; part <= kTables; ++part) {
      keys.push_back(to_device(stream, keys_of(step, number(store.rank()), part)));
      parts.push_back({.table = TableId{part % kTables}, .keys = keys.back()});
    }
    ahead.emplace(step, store.prepare(stream, Clock{step}, parts, 1));
  }
  void push(PreparedBatch const& batch) {
    std::vector<Matrix<float>> sources;
    std::vector<TableGradients> gradients;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      std::uint32_t const dim = store.table(TableId{static_cast<std::uint32_t>(p) % kTables}).dim;
      Matrix<float> const of_entries(Device::host(), batch.entries(p), dim);
      std::fill_n(of_entries.view().data(), of_entries.view().flat().size(), 1.0F);
      sources.push_back(moved<float const>(stream, stream.device(), of_entries));
    }
    for (auto const& source : sources) gradients.push_back({.sources = source});
    store.push(stream, batch, gradients);
    stream.wait();
  }
};

// Runs `of_rank` on all ranks, and returns the rows that it returns on any.
template <class OfRank>
std::vector<HotRow> rows_of_all(std::vector<Group> const& groups, OfRank of_rank) {
  std::mutex mutex;
  std::vector<HotRow> all;
  run_ranks(groups, [&](Group const& group) {
    std::vector<HotRow> const rows = of_rank(group);
    std::lock_guard const lock(mutex);
    all.insert(all.end(), rows.begin(), rows.end());
  });
  return all;
}
Rows uses_in(std::vector<HotRow> const& all) {
  Rows rows;
  for (auto const& row : all) EXPECT_TRUE(rows.emplace(std::pair(number(row.table), number(row.key)), row.uses).second);
  return rows;
}

StoreOptions options_of(PlacementPolicy policy, Device device = Device::host()) {
  return {.device = device, .threads = 1, .placement = policy, .ranks_per_host = 3};
}

// Returns the rows at the end of training with so many batches prepared ahead.
std::vector<HotRow> rows_at_end(std::vector<Group> const& groups, StoreOptions const& options, std::int64_t lookahead) {
  return rows_of_all(groups, [&](Group const& group) {
    Trainer rank(group, options);
    EXPECT_TRUE(rank.hottest().empty()) << "nothing is announced";
    rank.train(kSteps, lookahead);
    rank.store.wait_applied();
    auto rows = rank.hottest();
    rank.store.wait_barrier();
    return rows;
  });
}

class HotRowsOn : public OnDevice {
 protected:
  StoreOptions statics() const { return options_of(PlacementPolicy::kStatic, GetParam()); }
};

// Rows at their homes. The hot step is the last one that began with as many announced steps as possible.
TEST_P(HotRowsOn, AreThoseOfAStepNearTheEndWhereRowsDoNotMove) {
  for (std::int64_t const lookahead : {1, 5, 12, 30}) {
    for (auto const format : {KeyFormat::kPlain, KeyFormat::kDictionary}) {
      auto options = statics();
      options.key_format = format;
      auto const rows = rows_at_end(Group::threads(3), options, lookahead);
      EXPECT_EQ(uses_in(rows), naive_uses(3, kSteps - std::min(lookahead, kWindow), kSteps)) << lookahead;
      for (auto const& row : rows) EXPECT_EQ(row.placement.owner, row.placement.home);
    }
  }
}

TEST_P(HotRowsOn, AreThoseOfTheStepWhileTraining) {
  auto const rows = rows_of_all(Group::threads(3), [&](Group const& group) {
    Trainer rank(group, statics());
    rank.train(9, 5);
    rank.store.wait_barrier();
    auto seen = rank.hottest();
    EXPECT_EQ(uses_in(seen), uses_in(rank.hottest()));
    rank.train(kSteps, 5);
    rank.store.wait_barrier();
    return seen;
  });
  EXPECT_EQ(uses_in(rows), naive_uses(3, 9, 9 + 5));
}

// Where rows move or have moved, homes count in the plan of the next step, and see one step less ahead. Tables whose
// rows are too narrow to move count too.
TEST_P(HotRowsOn, AreTheSameWithAllPolicies) {
  for (auto const policy : {PlacementPolicy::kRelocate, PlacementPolicy::kAdaptive}) {
    auto options = options_of(policy, GetParam());
    std::vector<HotRow> rows = rows_at_end(Group::threads(3), options, 5);
    EXPECT_EQ(uses_in(rows), naive_uses(3, kSteps - 4, kSteps));
    bool const moved = std::any_of(rows.begin(), rows.end(),
                                   [](HotRow const& row) { return row.placement.reason == PlacementReason::kPolicy; });
    EXPECT_TRUE(moved);
    EXPECT_EQ(uses_in(rows_at_end(Group::threads(3), options, 30)),
              uses_in(rows_at_end(Group::threads(3), statics(), 30)));
  }
}

// Homes count the uses of their rows wherever these are, also after a restore.
TEST_P(HotRowsOn, MayBeAwayFromHomeWithoutAPolicy) {
  std::vector<Key> const localized{Key{0}, Key{1}, Key{2}, Key{3}};
  TemporaryFolder const folder;
  auto const check = [&](std::vector<HotRow> const& rows) {
    EXPECT_EQ(uses_in(rows), naive_uses(3, kSteps - 4, kSteps));
    std::size_t away = 0;
    for (auto const& row : rows) {
      bool const is_away = row.table == TableId{1} && number(row.key) < 4 && row.placement.home != Rank{1};
      EXPECT_EQ(row.placement.owner, is_away ? Rank{1} : row.placement.home);
      EXPECT_EQ(row.placement.reason, is_away ? PlacementReason::kLocalized : PlacementReason::kHome);
      away += is_away ? 1 : 0;
    }
    EXPECT_GT(away, 0U);
  };
  check(rows_of_all(Group::threads(3), [&](Group const& group) {
    Trainer rank(group, statics());
    rank.train(3, 0);
    auto const mine = to_device(rank.stream, group.rank() == Rank{1} ? localized : std::vector<Key>{});
    rank.store.localize(rank.stream, TableId{1}, mine);
    rank.prepared = 3;
    rank.store.save(folder.path(), {});
    rank.train(kSteps, 5);
    rank.store.wait_barrier();
    auto rows = rank.hottest();
    rank.store.wait_barrier();
    return rows;
  }));
  check(rows_of_all(Group::threads(3), [&](Group const& group) {
    Trainer rank(group, statics());
    rank.store.restore(folder.path());
    rank.prepared = 3;
    rank.train(kSteps, 5);
    rank.store.wait_barrier();
    auto rows = rank.hottest();
    rank.store.wait_barrier();
    return rows;
  }));
}

// Reads of copies are not announced. Ranks announce all uses of rows of their own home.
TEST_P(HotRowsOn, LackTheLeasedUsesUnderStaleness) {
  auto options = statics();
  options.staleness = 4;
  options.replica_fraction = 1;
  auto const rows = uses_in(rows_at_end(Group::threads(3), options, 5));
  std::uint64_t fewer = 0;
  for (auto const& [row, all] : naive_uses(3, kSteps - 5, kSteps)) {
    auto const found = rows.find(row);
    auto const announced = found == rows.end() ? Uses(3, 0) : found->second;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      bool const at_home = kernels::home_of(Key{row.second}, 3) == rank;
      if (at_home && found != rows.end()) {
        EXPECT_EQ(announced[rank], all[rank]);
      }
      fewer += std::max(all[rank], announced[rank]) - announced[rank];
    }
  }
  EXPECT_GT(rows.size(), 0U);
  EXPECT_GT(fewer, 0U);
}

TEST_P(HotRowsOn, MayBeErased) {
  auto const rows = rows_of_all(Group::threads(3), [&](Group const& group) {
    Trainer rank(group, statics());
    rank.train(kSteps, 5);
    std::vector<Key> every;
    for (std::uint64_t key = 0; key < kKeys; ++key) every.push_back(Key{key});
    for (std::uint32_t t = 0; t < kTables; ++t) {
      rank.store.erase(rank.stream, TableId{t}, to_device(rank.stream, every));
      EXPECT_EQ(rank.store.size(TableId{t}), 0U);
    }
    auto seen = rank.hottest();
    rank.store.wait_barrier();
    return seen;
  });
  EXPECT_EQ(uses_in(rows), naive_uses(3, kSteps - 5, kSteps));
}

// Batches of the step that is trained, or of the next round, are fetched at once.
TEST_P(HotRowsOn, AreNoneIfNoBatchIsAnnounced) { EXPECT_TRUE(rows_at_end(Group::threads(3), statics(), 0).empty()); }

TEST_P(HotRowsOn, AreThoseOfTheOnlyRank) {
  auto const rows = rows_at_end({Group::alone()}, statics(), 5);
  EXPECT_EQ(uses_in(rows), naive_uses(1, kSteps - 5, kSteps));
}

INSTANTIATE_TEST_SUITE_P(Devices, HotRowsOn, kDevices, device_name);

// Ranks receive messages in any order and late.
TEST(HotRows, DoNotDependOnDelays) {
  auto const expected = naive_uses(3, kSteps - 5, kSteps);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const groups = Group::simulated(3, {.seed = seed, .delay_ms_max = 20});
    auto const rows = rows_at_end(groups, options_of(PlacementPolicy::kStatic), 5);
    EXPECT_EQ(uses_in(rows), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpups::test::hot_rows_test
