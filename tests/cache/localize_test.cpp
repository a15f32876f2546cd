// SPDX-License-Identifier: Apache-2.0
// Rows that are away from their homes: every result is that of one rank, wherever the rows are.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>

#include "gpups/gpups.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::localize_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKeys = 200;
constexpr int kMicrobatches = 12;  // of a step, over all ranks
constexpr std::int64_t kSteps = 12;

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

std::mt19937_64 generator(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::seed_seq sequence{seed, a, b};
  return std::mt19937_64(sequence);
}

void add_tables(Store& store) {
  store.add_table({.name = "adagrad",
                   .dim = 5,
                   .initializer = {Initializer::Kind::kNormal, 0.1F},
                   .optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F},
                   .admission_count = 3});
  store.add_table({.name = "adam",
                   .dim = 3,
                   .initializer = {Initializer::Kind::kUniform, 0.1F},
                   .optimizer = {.kind = Optimizer::Kind::kAdam, .learning_rate = 0.1F},
                   .value_type = DataType::kBFloat16});
}
constexpr std::uint32_t kTables = 2;

// How a run places its rows, and when it prepares its batches.
struct Placing {
  std::int64_t every = 0;  // steps between calls of localize with random keys, from the first step on; 0: never
  std::int64_t lookahead = 0;
  std::uint64_t seed = 1;
};

// Moves random rows of both tables to random ranks.
void localize(Store& store, Stream& stream, std::uint64_t seed) {
  auto random = generator(seed, static_cast<std::uint64_t>(number(store.clock())), number(store.rank()));
  for (std::uint32_t t = 0; t < kTables; ++t) {
    std::vector<Key> keys(random() % kKeys);
    for (Key& key : keys) key = Key{random() % (kKeys + 20)};
    store.localize(stream, TableId{t}, View<Key const>(keys));
  }
}

PreparedBatch prepare(Store& store, Stream& stream, std::int64_t step) {
  std::vector<std::vector<Key>> keys(kTables);
  std::size_t samples = 0;
  for (int m = static_cast<int>(number(store.rank())); m < kMicrobatches; m += store.ranks()) {
    ++samples;
    auto random = generator(7, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(m));
    for (auto& of_table : keys) {
      for (int i = 0; i < 9; ++i) of_table.push_back(Key{random() % kKeys});
    }
  }
  std::vector<TableBatch> parts;
  for (std::uint32_t t = 0; t < kTables; ++t) {
    parts.push_back({.table = TableId{t}, .keys = View<Key const>(keys[t])});
  }
  return store.prepare(stream, Clock{step}, parts, samples);
}

void train(Store& store, Stream& stream, Placing const& placing, std::int64_t last) {
  std::deque<PreparedBatch> ahead;
  std::int64_t prepared = number(store.clock());
  for (std::int64_t step = prepared; step < last; ++step) {
    if (placing.every > 0 && step % placing.every == 0) localize(store, stream, placing.seed);
    // No batch is prepared across a call of localize.
    auto const end = placing.every > 0 ? (step / placing.every + 1) * placing.every : last;
    for (; prepared < std::min({end, last, step + placing.lookahead + 1}); ++prepared) {
      ahead.push_back(prepare(store, stream, prepared));
    }
    run_value_dependent_step(store, stream, ahead.front());
    ahead.pop_front();
  }
}

struct Result {
  std::uint64_t hash = 0, late_keys = 0, remote_keys = 0;
};

Result run(int ranks, Placing const& placing) {
  Result result;
  std::mutex mutex;
  run_ranks(group_of(ranks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    add_tables(store);
    auto stream = store.make_stream();
    train(store, stream, placing, kSteps);
    auto const hash = store.table_hash();
    auto const stats = store.stats();
    std::lock_guard const lock(mutex);
    result.hash = hash;
    result.late_keys += stats.late_keys;
    result.remote_keys += stats.remote_keys;
  });
  return result;
}

TEST(Localize, BitsAreThoseOfOneRank) {
  auto const alone = run(1, {});
  EXPECT_EQ(run(1, {.every = 3, .lookahead = 2}).hash, alone.hash);
  std::uint64_t late = 0, remote = 0;
  for (int const ranks : {2, 3, 5}) {
    EXPECT_EQ(run(ranks, {}).hash, alone.hash);
    for (std::int64_t const every : {kSteps, std::int64_t{5}, std::int64_t{1}}) {
      for (std::int64_t const lookahead : {0, 1, 2, 7}) {
        auto const moved = run(ranks, {.every = every, .lookahead = lookahead, .seed = 17});
        EXPECT_EQ(moved.hash, alone.hash) << ranks << " ranks, every " << every << ", ahead " << lookahead;
        late += moved.late_keys;
        remote += moved.remote_keys;
      }
    }
  }
  EXPECT_GT(late, 0U);
  EXPECT_GT(remote, late) << "both refreshes and late fetches are tested";
}

std::map<std::string, std::string> files_in(fs::path const& folder) {
  std::map<std::string, std::string> files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

TEST(Localize, ExportsHaveTheSameBytes) {
  TemporaryFolder const folder;
  auto const exported = [&](int ranks, Placing const& placing, char const* name) {
    run_ranks(group_of(ranks), [&](Group const& group) {
      Store store(group, {.threads = 1});
      add_tables(store);
      auto stream = store.make_stream();
      train(store, stream, placing, kSteps);
      store.export_rows(folder.path() / name, ExportFormat::kFlat);
    });
    return files_in(folder.path() / name);
  };
  auto const alone = exported(1, {}, "alone");
  EXPECT_EQ(alone.size(), 6U);
  EXPECT_EQ(exported(3, {.every = 4, .lookahead = 3}, "moved"), alone);
}

TEST(Localize, CheckpointsKeepTheirPlacement) {
  auto const alone = run(1, {});
  for (auto const& [before, after] : {std::pair{3, 3}, std::pair{3, 2}, std::pair{2, 3}, std::pair{3, 1}}) {
    TemporaryFolder const folder;
    std::vector<Rank> owners(kKeys);
    run_ranks(group_of(before), [&](Group const& group) {
      Store store(group, {.threads = 1});
      add_tables(store);
      auto stream = store.make_stream();
      train(store, stream, {.every = 3, .lookahead = 2}, 6);
      for (std::uint64_t k = 0; k < kKeys; ++k) {
        auto const owner = store.where(TableId{0}, Key{k}).owner;
        if (store.rank() == Rank{0}) owners[k] = owner;
      }
      store.save(folder.path(), {});
      store.wait_barrier();
    });
    run_ranks(group_of(after), [&](Group const& group) {
      Store store(group, {.threads = 1});
      add_tables(store);
      auto stream = store.make_stream();
      store.restore(folder.path());
      for (std::uint64_t k = 0; before == after && k < kKeys; ++k) {
        EXPECT_EQ(store.where(TableId{0}, Key{k}).owner, owners[k]) << k;
      }
      train(store, stream, {.lookahead = 3}, kSteps);
      EXPECT_EQ(store.table_hash(), alone.hash) << before << " ranks, then " << after;
      store.wait_barrier();
    });
  }
}

TEST(Localize, RowsThatARankHoldsAreNotExchanged) {
  run_ranks(Group::threads(2), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 100; ++k) keys.push_back(Key{2 * k + number(store.rank())});
    store.localize(stream, TableId{0}, View<Key const>(keys));
    for (std::int64_t step = 0; step < 6; ++step) {
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
      auto const batch = store.prepare(stream, Clock{step}, {&part, 1}, 1);
      Matrix<float> const sources(Device::host(), keys.size(), 2);
      memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
      store.wait_applied();
    }
    auto const stats = store.stats();
    EXPECT_EQ(stats.remote_keys, 0U);
    EXPECT_EQ(stats.sent.gradients + stats.sent.refreshes, 0U);
    EXPECT_EQ(store.size(TableId{0}), 200U);
    store.wait_barrier();
  });
}

TEST(Localize, WhereTellsOwnerHomeAndReason) {
  run_ranks(Group::threads(3), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    std::vector<Key> const keys{Key{1}, Key{2}, Key{1}};
    store.advance_clock();
    auto const before = store.where(TableId{0}, Key{1});
    EXPECT_EQ(before.owner, before.home);
    EXPECT_EQ(before.reason, PlacementReason::kHome);
    // Ranks 1 and 2 both want the rows; the lower rank gets them.
    store.localize(stream, TableId{0}, View<Key const>(keys).slice(0, store.rank() == Rank{0} ? 0 : 3));
    for (auto const key : {Key{1}, Key{2}}) {
      auto const row = store.where(TableId{0}, key);
      EXPECT_EQ(row.owner, Rank{1});
      EXPECT_EQ(row.reason, row.home == Rank{1} ? PlacementReason::kHome : PlacementReason::kLocalized);
      EXPECT_EQ(row.since, row.home == Rank{1} ? Clock{0} : Clock{1});
    }
    store.wait_barrier();
  });
}

TEST(Localize, AssignAndLookupReachRowsThatAreAway) {
  run_ranks(Group::threads(3), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 60; ++k) keys.push_back(Key{k});
    auto const slice = [&](std::size_t count) { return View<Key const>(keys).slice(0, count); };
    store.localize(stream, TableId{0}, slice(store.rank() == Rank{2} ? 30 : 0));
    Matrix<float> const values(Device::host(), 60, 2);
    for (std::size_t i = 0; i < 60; ++i)
      values.view().row(i)[0] = values.view().row(i)[1] = static_cast<float>(i) + 0.5F;
    store.assign(stream, TableId{0}, slice(store.rank() == Rank{1} ? 60 : 0), values);
    store.localize(stream, TableId{0}, slice(store.rank() == Rank{0} ? 15 : 0));
    Matrix<float> const read(Device::host(), 60, 2);
    std::vector<std::uint8_t> found(60);
    store.lookup(stream, TableId{0}, slice(60), read, View<std::uint8_t>(found));
    for (std::size_t i = 0; i < 60; ++i) {
      EXPECT_EQ(found[i], 1) << i;
      EXPECT_EQ(read.view().row(i)[0], static_cast<float>(i) + 0.5F) << i;
    }
    store.wait_barrier();
    store.erase(stream, TableId{0}, slice(store.rank() == Rank{1} ? 20 : 0));
    EXPECT_EQ(store.size(TableId{0}), 40U);
    auto const row = store.where(TableId{0}, Key{3});
    EXPECT_EQ(row.owner, row.home) << "erased rows are at home again";
    store.wait_barrier();
  });
}

// Residuals are kept while rows move: after a flush, each row has the sum of all gradients, which are whole numbers.
TEST(Localize, ResidualsFollowTheirRows) {
  constexpr int kRanks = 3;
  run_ranks(Group::threads(kRanks), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t",
                     .dim = 2,
                     .initializer = {Initializer::Kind::kConstant, 0.0F},
                     .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1.0F},
                     .gradient_compression = {.filter = {.age_max = 100, .density = 0.05F}}});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 50; ++k) keys.push_back(Key{k});
    constexpr int kTrained = 6;
    for (std::int64_t step = 0; step < kTrained; ++step) {
      auto random = generator(3, static_cast<std::uint64_t>(step), number(store.rank()));
      std::vector<Key> wanted(random() % 40);
      for (Key& key : wanted) key = Key{random() % 50};
      store.localize(stream, TableId{0}, View<Key const>(wanted));
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
      auto const batch = store.prepare(stream, Clock{step}, {&part, 1}, 1);
      Matrix<float> const sources(Device::host(), keys.size(), 2);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        sources.view().row(i)[0] = static_cast<float>(kRanks * static_cast<int>(i));
        sources.view().row(i)[1] = static_cast<float>(-kRanks * static_cast<int>(i));
      }
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
      if (step + 1 == kTrained) store.flush_residuals();
      store.advance_clock();
      store.wait_applied();
    }
    store.advance_clock();  // residuals of rows that moved to this rank are added by the next step
    store.wait_applied();
    Matrix<float> const read(Device::host(), 50, 2);
    store.lookup(stream, TableId{0}, View<Key const>(keys), read, {});
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(read.view().row(i)[0], static_cast<float>(-kRanks * kTrained * static_cast<int>(i))) << i;
    }
    store.wait_barrier();
  });
}

TEST(Localize, RejectsMisuse) {
  run_ranks(Group::threads(2), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    std::vector<Key> const keys{Key{1}};
    expect_error([&] { store.localize(stream, TableId{1}, View<Key const>(keys)); }, {"table 1"});
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
    auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
    expect_error([&] { store.localize(stream, TableId{0}, View<Key const>(keys)); }, {"is prepared for step 0"});
    Matrix<float> const sources(Device::host(), 1, 2);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    expect_error([&] { store.localize(stream, TableId{0}, View<Key const>(keys)); }, {"between push() and"});
    store.advance_clock();
    store.localize(stream, TableId{0}, View<Key const>(keys));
    EXPECT_EQ(store.where(TableId{0}, Key{1}).owner, Rank{0});
    store.wait_barrier();
  });
}

}  // namespace
}  // namespace gpups::test::localize_test
