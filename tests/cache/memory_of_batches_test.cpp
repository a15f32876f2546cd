// SPDX-License-Identifier: Apache-2.0
// Batches that are prepared far ahead need memory for their keys, but not for values, and batches whose step has ended
// have no gradients either.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test::memory_of_batches_test {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kBatches = 60;
constexpr std::uint64_t kKeys = 2000;  // of a batch
constexpr std::size_t kDim = 64;       // 256 bytes a row
// Arrays of a key: the key, its position, offset and order on the reader; its row number on the owner; and its place in
// the intent. A quarter more for size classes.
constexpr double kBytesOfKey = 1.25 * (8 + 3 * 4 + 4 + 4);

double in_use() { return static_cast<double>(memory::usage(Device::host()).bytes); }

TEST(MemoryOfBatches, HasKeysAheadAndAfterTheirSteps) {
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = kDim, .expected_rows = kKeys});
    auto stream = store.make_stream();
    std::vector<Key> keys(kKeys);
    for (std::uint64_t i = 0; i < kKeys; ++i) keys[i] = Key{i * 7 + 1};
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
    std::vector<PreparedBatch> batches{store.prepare(stream, Clock{0}, {&part, 1}, 1)};
    auto const train = [&] {
      auto const& batch = batches[static_cast<std::size_t>(number(store.clock()))];
      store.wait_ready(batch);
      Matrix<float> const rows(Device::host(), kKeys, kDim);
      MatrixView<float> const view(rows);
      store.pull(stream, batch, {&view, 1});
      TableGradients const gradients{.sources = rows, .source_indices = batch.positions(0)};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
      store.wait_applied();
    };
    train();  // the rows exist
    store.wait_barrier();
    double const before = in_use();
    store.wait_barrier();
    for (std::int64_t step = 1; step <= kBatches; ++step) {
      batches.push_back(store.prepare(stream, Clock{step}, {&part, 1}, 1));
    }
    for (int i = 0; i < 2; ++i) train();  // the intents have arrived
    store.wait_barrier();
    // One batch has values: the next one's may have arrived already.
    double const values = kRanks * static_cast<double>(kKeys * kDim * sizeof(float));
    double const per_key = (in_use() - before - values) / (kRanks * static_cast<double>(kBatches * kKeys));
    EXPECT_LE(per_key, kBytesOfKey);
    EXPECT_GE(per_key, 8);  // the batches are there
    store.wait_barrier();

    for (std::int64_t i = 2; i < kBatches; ++i) train();
    store.wait_barrier();
    double const after = (in_use() - before - values) / (kRanks * static_cast<double>(kBatches * kKeys));
    EXPECT_LE(after, kBytesOfKey);
    store.wait_barrier();
  });
}

}  // namespace
}  // namespace gpups::test::memory_of_batches_test
