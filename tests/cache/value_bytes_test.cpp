// SPDX-License-Identifier: Apache-2.0
// The bytes of the rows that ranks send each other, for each data type.
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test::value_bytes_test {
namespace {

struct Sent {
  std::uint64_t rows, bytes;
};

// Returns the rows and bytes that two ranks send each other for a batch that is announced ahead, or late. Checks that
// the rows equal those of a look-up.
// exist: rows have assigned values; otherwise no step has updated them.
Sent value_bytes_per_key(DataType type, std::size_t dim, bool late, bool exist) {
  std::mutex mutex;
  Sent sent{};
  run_ranks(Group::threads(2), [&](Group group) {
    Store store(group, {.threads = 1});
    auto const id = store.add_table(
        {.name = "t", .dim = dim, .initializer = {Initializer::Kind::kNormal, 0.1F}, .value_type = type});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 100; ++k) keys.push_back(Key{k});
    Matrix<float> const want(Device::host(), 100, dim);
    if (exist) {
      memory::fill_bytes(stream, want.view().data(), 0x3E, want.view().flat().bytes());
      store.assign(stream, id, View<Key const>(keys).slice(0, group.rank() == Rank{0} ? 100 : 0), want);
    }
    store.lookup(stream, id, View<Key const>(keys), want, {});
    TableBatch const part{.table = id, .keys = View<Key const>(keys)};
    auto const prepare = [&] { return store.prepare(stream, Clock{1}, {&part, 1}, 1); };
    std::optional<PreparedBatch> batch;
    if (!late) batch = prepare();
    store.advance_clock();
    if (late) store.wait_applied();  // the round that could have announced it is over
    if (late) batch = prepare();
    store.wait_ready(*batch);
    Matrix<float> rows(Device::host(), 100, dim);
    memory::fill_bytes(stream, rows.view().data(), 0xFF, rows.view().flat().bytes());
    MatrixView<float> const out = rows;
    store.pull(stream, *batch, {&out, 1});
    for (std::size_t i = 0; i < 100; ++i) {
      std::size_t const at = batch->positions(0)[i];
      for (std::size_t j = 0; j < row_stride(dim); ++j) {
        EXPECT_EQ(rows.view().row(at)[j], j < dim ? want.row(i)[j] : 0) << "row " << i << ", column " << j;
      }
    }
    store.wait_barrier();
    auto const stats = store.stats();
    std::lock_guard const lock(mutex);
    sent.rows += stats.remote_keys;
    // Keys of a late fetch are sent as gaps, here of a byte each, with two bits for each and a byte for the list.
    std::uint64_t const of_keys = 1 + (stats.remote_keys + 3) / 4 + stats.remote_keys;
    sent.bytes += late ? stats.sent.late_fetches - of_keys : stats.sent.refreshes;
    EXPECT_EQ(late ? stats.sent.refreshes : stats.sent.late_fetches, 0U);
  });
  return sent;
}

TEST(ValueBytes, HalfPrecisionHalvesBytes) {
  for (std::size_t const dim : {1, 4, 10, 20, 64, 100}) {
    for (bool const late : {false, true}) {
      for (auto const values : {DataType::kFloat, DataType::kBFloat16, DataType::kHalf}) {
        auto const [rows, bytes] = value_bytes_per_key(values, dim, late, true);
        EXPECT_EQ(rows, 100U);  // each is remote for one of the ranks
        std::size_t const row = values == DataType::kFloat ? 4 * dim : (dim + 1) / 2 * 4;  // whole words
        EXPECT_EQ(bytes, rows * row) << dim << ", late: " << late;
      }
    }
  }
}

// Readers compute initial values. A section has a bit for each row, unless values are as short.
TEST(ValueBytes, RowsWithInitialValuesAreNotSent) {
  for (bool const late : {false, true}) {
    auto const [rows, bytes] = value_bytes_per_key(DataType::kFloat, 10, late, false);
    EXPECT_EQ(rows, 100U);
    EXPECT_EQ(bytes, 2U * 2 * sizeof(std::uint32_t));  // 33 to 64 rows for each of two ranks
  }
}

}  // namespace
}  // namespace gpups::test::value_bytes_test
