// SPDX-License-Identifier: Apache-2.0
// erase() and expire(): removed rows start anew, their memory is reused, and the calls are rejected at the wrong time.
#include <gtest/gtest.h>

#include "gpups/gpups.hpp"
#include "tests/cache/cluster.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::erase_expire_test {
namespace {

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

TableOptions table(std::uint32_t admission_count = 1) {
  return {.name = "t",
          .dim = 3,
          .initializer = {Initializer::Kind::kNormal, 0.5F},
          .optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F, .initial_accumulator = 0.25F},
          .admission_count = admission_count};
}

std::vector<Key> keys_from(std::uint64_t first, std::uint64_t count) {
  std::vector<Key> keys;
  for (std::uint64_t k = first; k < first + count; ++k) keys.push_back(Key{k});
  return keys;
}

// Runs one step on these keys with a gradient of .5.
void step(Store& store, std::vector<Key> const& keys) {
  auto stream = store.make_stream();
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
  store.wait_ready(batch);
  Matrix<float> sources(Device::host(), keys.size(), 3);
  std::fill_n(sources.view().data(), sources.view().flat().size(), 0.5F);
  TableGradients const gradients{.sources = sources};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
}

void erase(Store& store, std::vector<Key> const& keys) {
  auto stream = store.make_stream();
  store.erase(stream, TableId{0}, View<Key const>(keys));
}

TEST(EraseExpire, ErasedRowStartsAnew) {
  for (std::uint32_t const admission_count : {1U, 2U}) {
    Store erased(Group::alone(), {}), fresh(Group::alone(), {});
    erased.add_table(table(admission_count));
    fresh.add_table(table(admission_count));
    for (int i = 0; i < 3; ++i) {
      step(erased, keys_from(0, 100));
      step(fresh, keys_from(50, 50));
    }
    erase(erased, keys_from(0, 50));
    EXPECT_EQ(erased.size(TableId{0}), 50U);
    EXPECT_EQ(erased.table_hash(), fresh.table_hash());
    for (int i = 0; i < 2; ++i) {  // new rows reuse memory with old values and state
      for (Store* const store : {&erased, &fresh}) step(*store, keys_from(30, 40));
      EXPECT_EQ(erased.size(TableId{0}), fresh.size(TableId{0}));
      EXPECT_EQ(erased.table_hash(), fresh.table_hash());
    }
  }
}

TEST(EraseExpire, EraseResetsOccurrences) {
  Store store(Group::alone(), {});
  store.add_table(table(2));
  step(store, keys_from(0, 10));
  erase(store, keys_from(0, 5));
  step(store, keys_from(0, 10));
  EXPECT_EQ(store.size(TableId{0}), 5U);
  step(store, keys_from(0, 10));
  EXPECT_EQ(store.size(TableId{0}), 10U);
}

TEST(EraseExpire, RowsExpireByLastUpdate) {
  Store store(Group::alone(), {});
  store.add_table(table());
  for (std::uint64_t i = 0; i < 10; ++i) step(store, keys_from(i, 1));  // key i at step i
  step(store, keys_from(0, 1));                                         // key 0 at step 10
  EXPECT_EQ(store.expire(TableId{0}, 11), 0U);
  EXPECT_EQ(store.expire(TableId{0}, 4), 6U);  // 7, 8, 9 and 0 stay
  EXPECT_EQ(store.size(TableId{0}), 4U);
  EXPECT_EQ(store.expire(TableId{0}, 4), 0U);
  store.advance_clock();  // a step without keys
  EXPECT_EQ(store.expire(TableId{0}, 4), 1U);
}

TEST(EraseExpire, AssignCountsAsUpdateOfPreviousStep) {
  Store store(Group::alone(), {});
  store.add_table(table());
  auto stream = store.make_stream();
  auto const keys = keys_from(0, 2);
  Matrix<float> values(Device::host(), 2, 3);
  memory::fill_bytes(stream, values.view().data(), 0, values.view().flat().bytes());
  store.assign(stream, TableId{0}, View<Key const>(keys), values);  // before step 0
  EXPECT_EQ(store.expire(TableId{0}, 1), 0U);
  step(store, keys_from(0, 1));
  EXPECT_EQ(store.expire(TableId{0}, 1), 1U);
}

// A checkpoint contains the ages of rows.
TEST(EraseExpire, AgesSurviveRestore) {
  TemporaryFolder const folder;
  {
    Store store(Group::alone(), {});
    store.add_table(table(2));
    step(store, keys_from(0, 10));
    step(store, keys_from(0, 10));
    step(store, keys_from(0, 3));
    step(store, keys_from(20, 5));  // not admitted yet
    store.save(folder.path(), {});
  }
  run_ranks(Group::threads(3), [&](Group group) {
    Store store(group, {});
    store.add_table(table(2));
    store.restore(folder.path());
    EXPECT_EQ(store.expire(TableId{0}, 2), 7U);
    EXPECT_EQ(store.size(TableId{0}), 3U);
    store.wait_barrier();
  });
}

TEST(EraseExpire, ExpireBoundsMemoryOfNewKeys) {
  for (int ranks : {1, 2}) {
    for (std::uint32_t const admission_count : {1U, 3U}) {
      run_ranks(group_of(ranks), [&](Group group) {
        Store store(group, {});
        store.add_table(table(admission_count));
        std::uint64_t growths = 0;
        for (std::uint64_t i = 0; i < 60; ++i) {
          // Every rank uses 1,000 new keys and 100 old ones.
          auto keys = keys_from((i * 2 + number(store.rank())) * 1000 + 1000, 1000);
          auto const staying = keys_from(0, 100);
          keys.insert(keys.end(), staying.begin(), staying.end());
          step(store, keys);
          if (i % 5 == 4) {
            std::size_t const before = store.size(TableId{0}), gone = store.expire(TableId{0}, 1);
            EXPECT_EQ(before - gone, store.size(TableId{0}));
          }
          if (i == 20) growths = store.stats().index_growths;
        }
        auto const stats = store.stats();
        // Of 60,000 or more. On two ranks, a step has 550 replicas, and those of four steps are kept.
        EXPECT_LE(stats.rows_reserved, 100U + 7000U + 5 * 550U);
        EXPECT_EQ(stats.index_growths, growths);
        EXPECT_GE(store.size(TableId{0}), 100U);
        store.wait_barrier();
      });
    }
  }
}

// The memory of rows equals the plan, except for the rounding of memory blocks, here of the index.
TEST(EraseExpire, RowMemoryMatchesPlan) {
  constexpr std::size_t kRows = 200000;
  Store store(Group::alone(), {});
  auto options = table();
  options.expected_rows = kRows;
  store.add_table(options);
  std::size_t planned = 0;
  for (auto const& line : store.memory_plan()) planned += line.bytes;
  std::size_t const before = memory::usage(Device::host()).bytes;
  step(store, keys_from(0, kRows));
  store.wait_applied();
  EXPECT_EQ(store.expire(TableId{0}, 1), 0U);
  std::size_t const taken = memory::usage(Device::host()).bytes - before;
  EXPECT_GE(taken + (std::size_t{64} << 10), planned);
  constexpr std::size_t kBlocks = std::size_t{400} << 10;
  EXPECT_LE(taken, planned + kBlocks);
}

// -- when the calls are rejected --

TEST(EraseExpire, AllRanksRejectWhileBatchIsPrepared) {
  run_ranks(Group::threads(3), [](Group group) {
    Store store(group, {});
    store.add_table(table());
    step(store, keys_from(0, 30));
    auto const hash = store.table_hash();
    auto stream = store.make_stream();
    auto const keys = keys_from(0, 9);
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
    PreparedBatch batch;
    if (number(store.rank()) == 1) batch = store.prepare(stream, store.clock() + 2, {&part, 1}, 1);
    expect_error([&] { erase(store, keys); }, {"a batch is prepared for step 3", "their steps have ended"});
    expect_error([&] { store.expire(TableId{0}, 1); }, {"a batch is prepared for step 3"});
    EXPECT_EQ(store.table_hash(), hash);
    store.advance_clock();
    store.advance_clock();
    if (number(store.rank()) == 1) {
      store.wait_ready(batch);
      Matrix<float> const sources(Device::host(), keys.size(), 3);
      memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
    }
    store.advance_clock();
    erase(store, keys);  // the step of the batch has ended
    EXPECT_EQ(store.size(TableId{0}), 21U);
    store.wait_barrier();
  });
}

TEST(EraseExpire, AllRanksRejectInvalidArguments) {
  run_ranks(Group::threads(2), [](Group group) {
    Store store(group, {});
    store.add_table(table());
    for (std::int64_t const age : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 32}) {
      expect_error([&] { store.expire(TableId{0}, age); }, {"expire() was called with the age"});
    }
    expect_error([&] { store.expire(TableId{7}, 5); }, {"table 7 does not exist"});
    step(store, keys_from(0, 3));  // the store still works
    EXPECT_EQ(store.expire(TableId{0}, 1), 0U);
    store.wait_barrier();
  });
}

class EraseExpireRanks : public testing::TestWithParam<int> {};

TEST_P(EraseExpireRanks, HashEqualsOneRank) {
  for (Device const device : devices()) {
    for (int lookahead : {0, 2, 9}) {
      Workload workload{.steps = 40,
                        .seed = 7,
                        .keys = 300,
                        .lookahead = lookahead,
                        .threads = 1 + lookahead % 2,
                        .admission_count = 1 + static_cast<std::uint32_t>(lookahead),
                        .expire_every = 5,
                        .age = 12};
      auto const alone = train_all({Group::alone()}, workload);
      workload.device = device;
      workload.placement = lookahead == 9 ? PlacementPolicy::kRandom : PlacementPolicy::kStatic;
      EXPECT_EQ(train_all(Group::threads(GetParam()), workload).hash, alone.hash)
          << "lookahead " << lookahead << " on " << to_string(device);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, EraseExpireRanks, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace gpups::test::erase_expire_test
