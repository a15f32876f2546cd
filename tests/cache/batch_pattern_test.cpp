// SPDX-License-Identifier: Apache-2.0
// A batch prepared from a pattern equals a batch prepared from its entries.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::batch_pattern_test {
namespace {

constexpr std::int64_t kBatches = 3, kEpochs = 4;
constexpr std::size_t kDim = 5, kEntries = 40, kBags = 8;

// Returns the keys of a rank's batch; some of them are frequent.
std::vector<Key> keys_of(std::int64_t batch, Rank rank) {
  std::vector<Key> keys;
  for (std::uint64_t e = 0; e < kEntries; ++e) {
    std::uint64_t const bits = kernels::mix(static_cast<std::uint64_t>(batch) << 40 | number(rank) << 20 | (e + 1));
    keys.push_back(Key{bits % (bits % 3 == 0 ? 4 : 60)});
  }
  return keys;
}

// Trains two tables, one of them with bags, and returns the table hash. anew: prepares every batch from its entries.
std::uint64_t train(Group const& group, bool anew) {
  Store store(group, {});
  store.add_table({.name = "a", .dim = kDim, .optimizer = {.kind = Optimizer::Kind::kAdagrad}, .admission_count = 2});
  store.add_table({.name = "b", .dim = kDim});
  Stream stream = store.make_stream();
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t bag = 0; bag <= kBags; ++bag) offsets.push_back(bag * kEntries / kBags);

  std::vector<BatchPattern> patterns(kBatches);
  auto const prepare = [&](Clock clock) {
    std::int64_t const batch = number(clock) % kBatches;
    if (number(clock) >= kBatches && !anew) return store.prepare(patterns[static_cast<std::size_t>(batch)], clock);
    auto const keys = keys_of(batch, store.rank());
    TableBatch const parts[] = {
        {.table = TableId{0}, .keys = View<Key const>(keys)},
        {.table = TableId{1}, .keys = View<Key const>(keys), .offsets = View<std::uint32_t const>(offsets)}};
    PreparedBatch const prepared = store.prepare(stream, clock, parts, 3);
    patterns[static_cast<std::size_t>(batch)] = prepared.pattern();
    return prepared;
  };

  std::int64_t const steps = kBatches * kEpochs;
  std::deque<PreparedBatch> ahead;
  for (std::int64_t t = 0; t < steps; ++t) {
    while (ahead.size() < 5 && t + static_cast<std::int64_t>(ahead.size()) < steps) {
      ahead.push_back(prepare(Clock{t + static_cast<std::int64_t>(ahead.size())}));
    }
    PreparedBatch const batch = ahead.front();
    ahead.pop_front();
    EXPECT_EQ(batch.samples(), 3U);
    EXPECT_EQ(batch.entries(1), kEntries);
    store.wait_ready(batch);
    Matrix<float> const a(Device::host(), batch.rows(0), kDim), b(Device::host(), batch.rows(1), kDim);
    Matrix<float> const pooled(Device::host(), kBags, kDim);
    MatrixView<float> const rows[] = {a, b};
    for (auto const& view : rows) memory::fill_bytes(stream, view.data(), 0, view.flat().bytes());
    memory::fill_bytes(stream, pooled.view().data(), 0, pooled.view().flat().bytes());
    store.pull(stream, batch, rows);
    store.pull_pooled(stream, batch, 1, Pooling::kSum, pooled);
    // The values read are the gradients, so a wrong value changes the hash.
    TableGradients const gradients[] = {{.sources = a, .source_indices = batch.positions(0)}, {.sources = pooled}};
    store.push(stream, batch, gradients);
    store.advance_clock();
  }
  return store.table_hash();
}

TEST(BatchPattern, GivesSameBitsAsEntries) {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    std::vector<std::uint64_t> hashes;
    for (bool anew : {true, false}) {
      std::atomic<std::uint64_t> hash = 0;
      run_ranks(Group::threads(ranks), [&](Group const& group) { hash = train(group, anew); });
      hashes.push_back(hash);
    }
    EXPECT_EQ(hashes[0], hashes[1]) << ranks << " ranks";
  }
}

TEST(BatchPattern, OutlivesBatchWithoutItsRows) {
  Store store(Group::alone(), {});
  store.add_table({.name = "a", .dim = 4096});
  Stream stream = store.make_stream();
  std::vector<Key> const keys{Key{1}, Key{2}, Key{1}};
  BatchPattern pattern;
  std::size_t with_rows = 0;
  {
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
    PreparedBatch const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
    pattern = batch.pattern();
    store.wait_ready(batch);
    Matrix<float> const sources(Device::host(), 3, 4096);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    with_rows = memory::usage(Device::host()).bytes;
    store.advance_clock();
    store.wait_applied();
  }
  EXPECT_LT(memory::usage(Device::host()).bytes, with_rows);
  PreparedBatch const again = store.prepare(pattern, Clock{3});
  EXPECT_EQ(again.clock(), Clock{3});
  EXPECT_EQ(again.rows(0), 2U);
  EXPECT_EQ(again.keys(0)[again.positions(0)[1]], Key{2});
  EXPECT_EQ(again.positions(0)[0], again.positions(0)[2]);
}

TEST(BatchPattern, RejectsMisuse) {
  Store store(Group::alone(), {});
  store.add_table({.name = "a", .dim = 4});
  Stream stream = store.make_stream();
  std::vector<Key> const keys{Key{1}};
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
  BatchPattern const pattern = store.prepare(stream, Clock{2}, {&part, 1}, 1).pattern();
  expect_error([&] { store.prepare(BatchPattern(), Clock{1}); }, {"step 1 from an empty pattern"});
  expect_error([&] { store.prepare(pattern, Clock{2}); }, {"a second batch is prepared for step 2"});
  expect_error([&] { store.prepare(pattern, Clock{1'000'000}); }, {"steps ahead): prepare it later"});
  store.advance_clock();
  expect_error([&] { store.prepare(pattern, Clock{0}); }, {"the next step is 1"});

  Store other(Group::alone(), {});
  other.add_table({.name = "b", .dim = 4});
  other.add_table({.name = "c", .dim = 4});
  TableBatch const of_c{.table = TableId{1}, .keys = View<Key const>(keys), .offsets = {}};
  BatchPattern const foreign = other.prepare(stream, Clock{0}, {&of_c, 1}, 1).pattern();
  expect_error([&] { store.prepare(foreign, Clock{3}); }, {"the pattern of another store"});
}

}  // namespace
}  // namespace gpups::test::batch_pattern_test
