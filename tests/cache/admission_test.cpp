// SPDX-License-Identifier: Apache-2.0
// Admission of rows at their n-th occurrence: reads before it, equal bits on any number of ranks, and checkpoints.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "gpups/gpups.hpp"
#include "tests/cache/cluster.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::admission_test {
namespace {

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

TableOptions table(std::uint32_t admission_count) {
  return {.name = "t",
          .dim = 3,
          .initializer = {Initializer::Kind::kNormal, 0.5F},
          .optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F, .initial_accumulator = 0.25F},
          .admission_count = admission_count};
}

// Runs one step with these entries on this rank. The gradient is .01 plus .3 times the value read.
void step(Store& store, std::vector<Key> const& entries) {
  auto stream = store.make_stream();
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(entries)};
  auto const batch = store.prepare(stream, store.clock(), {&part, 1}, entries.size());
  store.wait_ready(batch);
  Matrix<float> rows(Device::host(), batch.rows(0), 3), sources(Device::host(), entries.size(), 3);
  MatrixView<float> const out = rows;
  store.pull(stream, batch, {&out, 1});
  for (std::size_t e = 0; e < entries.size(); ++e) {
    for (std::size_t j = 0; j < 3; ++j) sources.row(e)[j] = 0.01F + 0.3F * rows.row(batch.positions(0)[e])[j];
  }
  TableGradients const gradients{.sources = sources};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
}

struct Seen {
  bool found;
  float value;
};
Seen look_up(Store& store, Key key) {
  auto stream = store.make_stream();
  std::vector<Key> const keys{key};
  std::vector<std::uint8_t> found(1);
  Matrix<float> out(Device::host(), 1, 3);
  store.lookup(stream, TableId{0}, View<Key const>(keys), out, View<std::uint8_t>(found));
  return {found[0] != 0, out.row(0)[1]};
}

std::size_t scanned(Store& store) {
  auto stream = store.make_stream();
  std::size_t rows = 0;
  store.scan(stream, TableId{0}, [&](View<Key const> keys, auto) { rows += keys.size(); });
  return rows;
}

TEST(Admission, KeyHasNoRowBeforeNthOccurrence) {
  Store store(Group::alone(), {});
  store.add_table(table(4));
  auto const empty = store.table_hash();
  float const initial = look_up(store, Key{7}).value;
  step(store, {Key{7}, Key{7}});  // 2
  step(store, {Key{7}});          // 3
  EXPECT_FALSE(look_up(store, Key{7}).found);
  EXPECT_EQ(look_up(store, Key{7}).value, initial);
  EXPECT_EQ(store.table_hash(), empty);
  EXPECT_EQ(store.size(TableId{0}), 0U);
  EXPECT_EQ(scanned(store), 0U);
  step(store, {Key{8}, Key{7}, Key{7}});  // 5: more than needed, in one step
  EXPECT_TRUE(look_up(store, Key{7}).found);
  EXPECT_NE(look_up(store, Key{7}).value, initial);
  EXPECT_FALSE(look_up(store, Key{8}).found);
  EXPECT_EQ(store.size(TableId{0}), 1U);
  EXPECT_EQ(scanned(store), 1U);
}

// The step that admits a row applies its gradients, and no gradients of earlier steps.
TEST(Admission, AdmittingStepIsFirstUpdateOfRow) {
  Store late(Group::alone(), {}), fresh(Group::alone(), {});
  late.add_table(table(3));
  fresh.add_table(table(1));
  for (int i = 0; i < 2; ++i) {
    step(late, {Key{7}});
    fresh.advance_clock();
  }
  for (int i = 0; i < 2; ++i) {
    step(late, {Key{7}});
    step(fresh, {Key{7}});
  }
  EXPECT_EQ(late.table_hash(), fresh.table_hash());
}

// Two ranks use a key twice each in one step: these are four occurrences, whichever rank owns the key.
TEST(Admission, CountsOccurrencesOfAllRanks) {
  for (std::uint32_t const admission_count : {4U, 5U}) {
    run_ranks(Group::threads(2), [&](Group group) {
      Store store(group, {});
      store.add_table(table(admission_count));
      std::vector<Key> entries;
      for (std::uint64_t k = 0; k < 20; ++k) entries.insert(entries.end(), {Key{k}, Key{k}});
      step(store, entries);
      EXPECT_EQ(store.size(TableId{0}), admission_count == 4 ? 20U : 0U);
      store.wait_barrier();
    });
  }
}

TEST(Admission, RejectedStepCountsNoOccurrences) {
  Store store(Group::alone(), {});
  store.add_table(table(2));
  auto stream = store.make_stream();
  std::vector<Key> const entries{Key{1}};
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(entries)};
  auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
  store.wait_ready(batch);
  Matrix<float> sources(Device::host(), 1, 3);
  std::fill_n(sources.view().data(), sources.view().flat().size(), std::numeric_limits<float>::quiet_NaN());
  TableGradients const gradients{.sources = sources};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
  EXPECT_THROW(store.wait_applied(), GradientError);
  step(store, entries);
  EXPECT_EQ(store.size(TableId{0}), 0U);
  step(store, entries);
  EXPECT_EQ(store.size(TableId{0}), 1U);
}

TEST(Admission, AssignCreatesRowAtOnce) {
  Store store(Group::alone(), {});
  store.add_table(table(3));
  step(store, {Key{1}, Key{2}});
  auto stream = store.make_stream();
  std::vector<Key> const keys{Key{1}};
  Matrix<float> values(Device::host(), 1, 3);
  std::fill_n(values.view().data(), 3, 9.0F);
  store.assign(stream, TableId{0}, View<Key const>(keys), values);
  EXPECT_TRUE(look_up(store, Key{1}).found);
  step(store, {Key{1}, Key{2}});
  EXPECT_LT(look_up(store, Key{1}).value, 9.0F);
  EXPECT_FALSE(look_up(store, Key{2}).found);
}

// A rank that admits at the first occurrence sends no occurrences.
TEST(Admission, OccurrencesAreSentOnlyIfEnabled) {
  std::uint64_t sent[2] = {};
  for (std::uint32_t const admission_count : {1U, 2U}) {
    run_ranks(Group::threads(2), [&](Group group) {
      Store store(group, {});
      store.add_table(table(admission_count));
      std::vector<Key> entries;
      for (std::uint64_t k = 0; k < 100; ++k) entries.push_back(Key{k});
      step(store, entries);
      store.wait_applied();  // else the step's gradients may not have been sent
      if (number(store.rank()) == 0) sent[admission_count - 1] = store.stats().sent.gradients;
      store.wait_barrier();
    });
  }
  // The sums of a row take 4 bits, and 4 bytes for each of three columns. Occurrences take a byte for each row, and 4
  // bits for 16 rows. They begin at a multiple of 16 bytes.
  std::uint64_t rows = 0;
  while (rows < 100 && (rows + 1) / 2 + rows * 12 < sent[0]) ++rows;
  EXPECT_EQ(sent[0], (rows + 1) / 2 + rows * 12);
  std::uint64_t const lines = (rows + 15) / 16;
  EXPECT_EQ(sent[1], (sent[0] + 15) / 16 * 16 + (lines + 1) / 2 + lines * 16);
}

TEST(Admission, RejectsInvalidCounts) {
  Store store(Group::alone(), {});
  for (std::uint32_t const admission_count : {0U, 0x80000000U}) {
    expect_error([&] { store.add_table(table(admission_count)); }, {"has admission_count", "set admission_count"});
  }
  store.add_table(table(0x7FFFFFFF));
}

class AdmissionRanks : public testing::TestWithParam<int> {};

TEST_P(AdmissionRanks, HashEqualsOneRank) {
  for (int lookahead : {0, 3, 9}) {
    Workload const workload{.steps = 40,
                            .seed = 5,
                            .keys = 400,
                            .lookahead = lookahead,
                            .threads = 1 + lookahead % 2,
                            .admission_count = 4};
    auto const alone = train_all({Group::alone()}, workload);
    EXPECT_EQ(train_all(Group::threads(GetParam()), workload).hash, alone.hash) << "lookahead " << lookahead;
    EXPECT_GT(alone.rows, 10U);
    EXPECT_LT(alone.rows, 300U);  // the other keys are not admitted
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, AdmissionRanks, testing::Values(1, 2, 3, 4));

// -- checkpoints --

// Trains up to step `last`. Rank r of n has the entries of microbatches r, r + n, ... of eight.
void train(Store& store, std::int64_t last) {
  while (number(store.clock()) < last) {
    std::vector<Key> entries;
    for (std::uint64_t m = number(store.rank()); m < 8; m += static_cast<std::uint64_t>(store.ranks())) {
      std::mt19937_64 random(static_cast<std::uint64_t>(number(store.clock())) * 8 + m);
      for (int i = 0; i < 20; ++i) entries.push_back(Key{random() % 200});
    }
    step(store, entries);
  }
}

// Returns the table hash after step 9. With `stop` the store is saved after step 4 and restored into another store.
std::uint64_t hash_of(int before, int after, bool stop, std::filesystem::path const& folder) {
  std::uint64_t hash = 0;
  auto const report = [&](Store& store) {
    auto const mine = store.table_hash();
    if (number(store.rank()) == 0) hash = mine;
    store.wait_barrier();
  };
  run_ranks(group_of(before), [&](Group group) {
    Store store(group, {});
    store.add_table(table(5));
    train(store, 4);
    EXPECT_GT(store.size(TableId{0}), 20U);
    EXPECT_LT(store.size(TableId{0}), 180U);
    if (stop) return store.save(folder, {});
    train(store, 9);
    report(store);
  });
  if (!stop) return hash;
  run_ranks(group_of(after), [&](Group group) {
    Store store(group, {});
    store.add_table(table(5));
    store.restore(folder);
    train(store, 9);
    report(store);
  });
  return hash;
}

TEST(Admission, OccurrencesSurviveRestoreOnAnyRanks) {
  TemporaryFolder const folder;
  auto const undisturbed = hash_of(1, 1, false, folder.path());
  for (int before : {1, 3}) {
    for (int after : {1, 2, 4}) {
      EXPECT_EQ(hash_of(before, after, true, folder.path()), undisturbed) << before << " ranks, then " << after;
    }
  }
}

TEST(Admission, RejectsCheckpointWithOtherCount) {
  TemporaryFolder const folder;
  {
    Store store(Group::alone(), {});
    store.add_table(table(5));
    store.save(folder.path(), {});
  }
  Store store(Group::alone(), {});
  store.add_table(table(6));
  expect_error([&] { store.restore(folder.path()); },
               {"admission_count of table 't' is 5 in the checkpoint and 6 here"});
}

TEST(Admission, RejectsCheckpointOfFormat1) {
  TemporaryFolder const folder;
  folder.write("manifest.json", "{\"format\": 1}\n");
  Store store(Group::alone(), {});
  store.add_table(table(1));
  expect_error([&] { store.restore(folder.path()); }, {"has format 1 (this program reads 2 to 6)"});
}

}  // namespace
}  // namespace gpups::test::admission_test
