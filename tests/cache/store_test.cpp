// SPDX-License-Identifier: Apache-2.0
// The basic behaviour of the store, on one rank and on several threads.
#include "gpups/store.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/cache/cluster.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::store_test {
namespace {

std::vector<Key> keys_of(std::initializer_list<std::uint64_t> numbers) {
  std::vector<Key> keys;
  for (auto n : numbers) keys.push_back(Key{n});
  return keys;
}

TableOptions lossless_table(std::size_t dim) {
  return {.name = "plain",
          .dim = dim,
          .initializer = {Initializer::Kind::kConstant, 1.0F},
          .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1.0F}};
}

// Runs one step on `keys` with the gradient `amount` in every column of every key.
void step(Store& store, Stream& stream, std::vector<Key> const& keys, float amount, std::size_t dim) {
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
  store.wait_ready(batch);
  Matrix<float> sources(Device::host(), keys.size(), dim);
  std::fill_n(sources.view().data(), sources.view().flat().size(), amount);
  TableGradients const gradients{.sources = sources};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
}

float value_of(Store& store, Stream& stream, Key key, std::size_t dim, bool* found = nullptr) {
  std::vector<Key> const keys{key};
  std::vector<std::uint8_t> exists(1);
  Matrix<float> out(Device::host(), 1, dim);
  store.lookup(stream, TableId{0}, View<Key const>(keys), out, View<std::uint8_t>(exists));
  if (found != nullptr) *found = exists[0] != 0;
  return out.row(0)[dim - 1];
}

TEST(Store, FirstUseCreatesRow) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(3));
  auto stream = store.make_stream();
  bool found = true;
  EXPECT_EQ(value_of(store, stream, Key{7}, 3, &found), 1.0F);
  EXPECT_FALSE(found);
  EXPECT_EQ(store.size(TableId{0}), 0U);

  step(store, stream, keys_of({7, 7, 9}), 0.5F, 3);
  EXPECT_EQ(store.size(TableId{0}), 2U);
  EXPECT_EQ(value_of(store, stream, Key{7}, 3, &found), 0.0F);  // two entries of .5
  EXPECT_TRUE(found);
  EXPECT_EQ(value_of(store, stream, Key{9}, 3), 0.5F);
  EXPECT_EQ(value_of(store, stream, Key{8}, 3), 1.0F);
}

// A factor that lost its initial value would stay at 0, and so would the gradients of the factor it is multiplied with.
TEST(Store, FtrlStartsFromInitialAndFromAssignedValues) {
  Store store(Group::alone(), {});
  auto table = lossless_table(3);
  table.optimizer = {.kind = Optimizer::Kind::kFtrl, .learning_rate = 0.5F};
  store.add_table(table);
  auto stream = store.make_stream();
  step(store, stream, keys_of({7, 8}), 3, 3);
  EXPECT_FLOAT_EQ(value_of(store, stream, Key{7}, 3), 1 - 0.5F * 3 / (3 + 1));
  step(store, stream, keys_of({7}), 4, 3);
  EXPECT_FLOAT_EQ(value_of(store, stream, Key{7}, 3), 0.625F - 0.5F * 4 / (5 + 1));
  EXPECT_FLOAT_EQ(value_of(store, stream, Key{8}, 3), 0.625F);
  auto const eight = keys_of({8});
  Matrix<float> fives(Device::host(), 1, 3);
  std::fill_n(fives.row(0).data(), 3, 5.0F);
  store.assign(stream, TableId{0}, View<Key const>(eight), fives);
  step(store, stream, eight, 0, 3);
  EXPECT_FLOAT_EQ(value_of(store, stream, Key{8}, 3), 5);
  step(store, stream, eight, 4, 3);
  EXPECT_FLOAT_EQ(value_of(store, stream, Key{8}, 3), 5 - 0.5F * 4 / (5 + 1));
}

TEST(Store, PrepareCreatesNoRows) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(2));
  auto stream = store.make_stream();
  auto const hash = store.table_hash();
  auto const keys = keys_of({1, 2, 3});
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, Clock{3}, {&part, 1}, 1);
  EXPECT_EQ(store.size(TableId{0}), 0U);
  EXPECT_EQ(store.table_hash(), hash);
}

TEST(Store, PullPooledSumsAndAverages) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(2));
  auto stream = store.make_stream();
  auto const keys = keys_of({1, 2, 3});
  Matrix<float> values(Device::host(), 3, 2);
  for (int i = 0; i < 3; ++i) values.row(i)[0] = values.row(i)[1] = static_cast<float>(i + 1);
  store.assign(stream, TableId{0}, View<Key const>(keys), values);

  auto const entries = keys_of({1, 2, 3, 3});
  std::vector<std::uint32_t> const offsets{0, 2, 2, 4};
  TableBatch const part{
      .table = TableId{0}, .keys = View<Key const>(entries), .offsets = View<std::uint32_t const>(offsets)};
  auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 3);
  store.wait_ready(batch);
  Matrix<float> out(Device::host(), 3, 2);
  store.pull_pooled(stream, batch, 0, Pooling::kSum, out);
  EXPECT_EQ(out.row(0)[0], 3.0F);
  EXPECT_EQ(out.row(1)[0], 0.0F);
  EXPECT_EQ(out.row(2)[1], 6.0F);
  store.pull_pooled(stream, batch, 0, Pooling::kMean, out);
  EXPECT_EQ(out.row(0)[0], 1.5F);
  EXPECT_EQ(out.row(1)[1], 0.0F);

  std::vector<float> const weights{4, 0.5F, -1, 2};
  store.pull_pooled(stream, batch, 0, Pooling::kSum, out, View<float const>(weights));
  EXPECT_EQ(out.row(0)[0], 4.0F * 1 + 0.5F * 2);
  EXPECT_EQ(out.row(2)[1], -1.0F * 3 + 2.0F * 3);
  store.pull_pooled(stream, batch, 0, Pooling::kMean, out, View<float const>(weights));
  EXPECT_EQ(out.row(0)[0], 5.0F / 2);
  EXPECT_EQ(out.row(1)[0], 0.0F);
  std::vector<float> const few{1, 2};
  expect_error([&] { store.pull_pooled(stream, batch, 0, Pooling::kSum, out, View<float const>(few)); },
               {"2 coefficients for 4 entries"});

  Matrix<float> const of_entries(Device::host(), 4, 2);
  TableGradients const not_of_bags{.sources = of_entries};
  expect_error([&] { store.push(stream, batch, {&not_of_bags, 1}); }, {"4 sources for 3 bags"});

  // The bag is the source of its entries.
  Matrix<float> bags(Device::host(), 3, 2);
  for (int b = 0; b < 3; ++b) bags.row(b)[0] = bags.row(b)[1] = static_cast<float>(3 * b);
  TableGradients const gradients{.sources = bags};
  expect_error([&] { store.push(stream, batch, {&gradients, 1}); }, {"pooled by their mean", "1 / bag size"});
  store.pull_pooled(stream, batch, 0, Pooling::kSum, out);
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
  EXPECT_EQ(value_of(store, stream, Key{1}, 2), 1.0F);
  EXPECT_EQ(value_of(store, stream, Key{3}, 2), 3.0F - 12.0F / 3);
}

TEST(Store, TwoPartsMayUseOneTable) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(2));
  auto stream = store.make_stream();
  auto const left = keys_of({1, 2}), right = keys_of({2, 3});
  TableBatch const parts[] = {{.table = TableId{0}, .keys = View<Key const>(left)},
                              {.table = TableId{0}, .keys = View<Key const>(right)}};
  auto const batch = store.prepare(stream, Clock{0}, parts, 1);
  store.wait_ready(batch);
  Matrix<float> sources(Device::host(), 2, 2);
  std::fill_n(sources.view().data(), sources.view().flat().size(), 0.25F);
  TableGradients const gradients[] = {{.sources = sources}, {.sources = sources}};
  store.push(stream, batch, gradients);
  store.advance_clock();
  EXPECT_EQ(value_of(store, stream, Key{1}, 2), 0.75F);
  EXPECT_EQ(value_of(store, stream, Key{2}, 2), 0.5F);
  EXPECT_EQ(value_of(store, stream, Key{3}, 2), 0.75F);
}

TEST(Store, ScanVisitsEveryRowOnce) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(1));
  auto stream = store.make_stream();
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < 40000; ++i) keys.push_back(Key{i * i});
  step(store, stream, keys, 1.0F, 1);
  std::map<Key, int> seen;
  store.scan(stream, TableId{0}, [&](View<Key const> part, MatrixView<float const> values) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      ++seen[part[i]];
      EXPECT_EQ(values.row(i)[0], 0.0F);
    }
  });
  EXPECT_EQ(seen.size(), keys.size());
  for (auto const& [key, times] : seen) ASSERT_EQ(times, 1);
}

TEST(Store, RejectsStepWithNonFiniteGradient) {
  for (int ranks : {1, 3}) {
    run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks), [&](Group group) {
      Store store(group, {});
      store.add_table(lossless_table(2));
      auto stream = store.make_stream();
      step(store, stream, keys_of({1, 2, 3, 4}), 0.0F, 2);
      auto const hash = store.table_hash();
      bool const bad = number(store.rank()) == 0;
      step(store, stream, keys_of({1, 2}), bad ? std::numeric_limits<float>::quiet_NaN() : 1.0F, 2);
      try {
        store.wait_applied();
        ADD_FAILURE() << "accepted";
      } catch (GradientError const& error) {
        EXPECT_NE(std::string(error.what()).find("'plain'"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("key "), std::string::npos) << error.what();
      }
      EXPECT_EQ(store.table_hash(), hash);
      step(store, stream, keys_of({1}), 1.0F, 2);  // training can continue
      EXPECT_NE(store.table_hash(), hash);
      store.wait_barrier();
    });
  }
}

TEST(Store, GivenSourceMaximumIsNotRecomputed) {
  auto const push = [](Store& store, float amount, std::optional<float> most) {
    auto stream = store.make_stream();
    auto const keys = keys_of({1, 2});
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
    auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
    store.wait_ready(batch);
    Matrix<float> sources(Device::host(), keys.size(), 2);
    std::fill_n(sources.view().data(), sources.view().flat().size(), amount);
    TableGradients const gradients{.sources = sources, .source_max_abs = most};
    store.push(stream, batch, {&gradients, 1});
    store.advance_clock();
    store.wait_applied();
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  Store measured(Group::alone(), {}), given(Group::alone(), {});
  measured.add_table(lossless_table(2)), given.add_table(lossless_table(2));
  push(measured, 0.25F, {}), push(given, 0.25F, 0.25F);
  EXPECT_EQ(measured.table_hash(), given.table_hash());
  EXPECT_THROW(push(given, kNan, kInf), GradientError);  // no row has changed
  EXPECT_EQ(measured.table_hash(), given.table_hash());
  try {
    push(given, kNan, 1.0F);
    ADD_FAILURE() << "a wrong source_max_abs was accepted";
  } catch (GradientError const&) {
    ADD_FAILURE() << "a GradientError was thrown, which means that no row has changed, but rows have";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("table 'plain'"), std::string::npos) << error.what();
  }
}

TEST(Store, RejectsMisuse) {
  Store store(Group::alone(), {});
  EXPECT_THROW(store.add_table({.name = "", .dim = 3}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 0}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 2, .schedule = {.kind = Schedule::Kind::kLinear}}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 2, .optimizer = {.learning_rate = -1}}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 2, .optimizer = {.beta2 = 1}}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 2, .optimizer = {.beta1 = -0.1F}}), Error);
  EXPECT_THROW(store.add_table({.name = "x", .dim = 2, .optimizer = {.l1 = -1}}), Error);
  store.add_table(lossless_table(2));
  EXPECT_THROW(store.add_table(lossless_table(2)), Error);
  auto stream = store.make_stream();
  auto const keys = keys_of({1, 2});
  TableBatch const unknown{.table = TableId{4}, .keys = View<Key const>(keys)};
  EXPECT_THROW(store.prepare(stream, Clock{0}, {&unknown, 1}, 1), Error);
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
  EXPECT_THROW(store.prepare(stream, Clock{0}, {&part, 1}, 1), Error);  // the step has a batch
  auto const later = store.prepare(stream, Clock{2}, {&part, 1}, 1);
  EXPECT_THROW(store.wait_ready(later), Error);
  store.wait_ready(batch);
  Matrix<float> narrow(Device::host(), 2, 1);
  MatrixView<float> const out = narrow;
  EXPECT_THROW(store.pull(stream, batch, {&out, 1}), Error);
  EXPECT_THROW(store.add_table({.name = "late", .dim = 2}), Error);
  EXPECT_THROW(store.advance_clock(), Error);  // its batch has not been pushed
  Matrix<float> const values(Device::host(), 2, 2);
  // A batch of this step is prepared.
  EXPECT_THROW(store.assign(stream, TableId{0}, View<Key const>(keys), values), Error);
  TableGradients const too_few{.sources = narrow};
  EXPECT_THROW(store.push(stream, batch, {&too_few, 1}), Error);
  Matrix<float> sources(Device::host(), 2, 2);
  memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
  TableGradients const gradients{.sources = sources};
  EXPECT_THROW(store.push(stream, later, {&gradients, 1}), Error);
  for (float const bound : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    TableGradients const wrong_bound{.sources = sources, .source_max_abs = bound};
    expect_error([&] { store.push(stream, batch, {&wrong_bound, 1}); }, {"source_max_abs"});
  }
  TableGradients const overlapping{.sources = {sources.view().data(), 2, 2, 1}};
  expect_error([&] { store.push(stream, batch, {&overlapping, 1}); }, {"stride is below its number of columns"});
  store.push(stream, batch, {&gradients, 1});
  EXPECT_THROW(store.push(stream, batch, {&gradients, 1}), Error);
  store.advance_clock();
  EXPECT_THROW(store.prepare(stream, Clock{0}, {&part, 1}, 1), Error);  // the past
  std::vector<std::uint32_t> const wrong{0, 5};
  TableBatch const bags{
      .table = TableId{0}, .keys = View<Key const>(keys), .offsets = View<std::uint32_t const>(wrong)};
  EXPECT_THROW(store.prepare(stream, Clock{1}, {&bags, 1}, 1), Error);
}

TEST(Store, PullNeedsReadyAndUnpushedBatch) {
  Store store(Group::alone(), {});
  store.add_table(lossless_table(2));
  auto stream = store.make_stream();
  auto const keys = keys_of({1, 2});
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, Clock{1}, {&part, 1}, 1);  // a batch of a later step cannot be ready
  Matrix<float> rows(Device::host(), 2, 2);
  MatrixView<float> const out = rows;
  EXPECT_THROW(store.pull(stream, batch, {&out, 1}), Error);
  store.advance_clock();
  TableGradients const gradients{.sources = rows};
  store.wait_ready(batch);
  store.pull(stream, batch, {&out, 1});
  store.push(stream, batch, {&gradients, 1});
  for (int step = 0; step < 2; ++step) {  // rows may have changed
    expect_error([&] { store.pull(stream, batch, {&out, 1}); }, {"for the batch of step 1 after its push"});
    store.advance_clock();
  }
}

TEST(Store, SignalsReachAllRanks) {
  run_ranks(Group::threads(3), [](Group group) {
    Store store(group, {});
    store.add_table(lossless_table(2));
    store.advance_clock(1U << number(store.rank()));
    store.wait_applied();
    EXPECT_EQ(store.signals(), 7U);
    store.advance_clock();
    store.wait_applied();
    EXPECT_EQ(store.signals(), 0U);
  });
}

TEST(Store, AssignAndLookupReachRowsOfAllRanks) {
  run_ranks(Group::threads(3), [](Group group) {
    Store store(group, {});
    store.add_table(lossless_table(2));
    auto stream = store.make_stream();
    std::vector<Key> mine;
    for (std::uint64_t i = 0; i < 100; ++i) mine.push_back(Key{i * 3 + number(store.rank())});
    Matrix<float> values(Device::host(), mine.size(), 2);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      values.row(i)[0] = values.row(i)[1] = static_cast<float>(number(mine[i]));
    }
    store.assign(stream, TableId{0}, View<Key const>(mine), values);
    EXPECT_EQ(store.size(TableId{0}), 300U);
    std::vector<Key> all;
    for (std::uint64_t i = 0; i < 301; ++i) all.push_back(Key{300 - i});
    Matrix<float> out(Device::host(), all.size(), 2);
    std::vector<std::uint8_t> found(all.size());
    store.lookup(stream, TableId{0}, View<Key const>(all), out, View<std::uint8_t>(found));
    EXPECT_EQ(found[0], 0);
    EXPECT_EQ(out.row(0)[0], 1.0F);  // the initial value
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_EQ(found[i], 1);
      ASSERT_EQ(out.row(i)[1], static_cast<float>(number(all[i])));
    }
    store.wait_barrier();
  });
}

TEST(Store, ErrorNamesLostRank) {
  auto const group = Group::threads(3);
  EXPECT_THROW(run_ranks(group,
                         [](Group mine) {
                           Store store(mine, {});
                           store.add_table(lossless_table(2));
                           store.wait_barrier();
                           if (number(store.rank()) == 1) throw std::runtime_error("the disk is on fire");
                           try {
                             store.wait_barrier();
                             ADD_FAILURE() << "rank 1 reached the barrier";
                           } catch (PeerError const& error) {
                             EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
                             throw;
                           }
                         }),
               std::runtime_error);
}

class StoreRanks : public testing::TestWithParam<int> {};

TEST_P(StoreRanks, HashEqualsOneRank) {
  for (int lookahead : {0, 1, 4, 16}) {
    for (Device const device : devices()) {
      Workload workload{.steps = 40, .seed = 3, .keys = 200, .lookahead = lookahead};
      auto const alone = train_all({Group::alone()}, workload);
      workload.device = device;
      std::vector policies{PlacementPolicy::kStatic};
      if (lookahead == 4) policies = {PlacementPolicy::kAdaptive, PlacementPolicy::kRandom};
      for (auto const policy : policies) {
        workload.placement = policy;
        auto const all = train_all(Group::threads(GetParam()), workload);
        EXPECT_EQ(all.hash, alone.hash) << name_of(policy) << ", lookahead " << lookahead << " on "
                                        << to_string(device);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, StoreRanks, testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace gpups::test::store_test
