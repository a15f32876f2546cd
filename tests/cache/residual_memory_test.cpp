// SPDX-License-Identifier: Apache-2.0
// The memory of residuals, mirrors and key dictionaries is proportional to their rows, and matches the plan.
#include <gtest/gtest.h>

#include <vector>

#include "cache/feedback/residual_table.hpp"
#include "cache/feedback/row_mirror.hpp"
#include "cache/wire/key_dictionary.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::cache::residual_memory_test {
namespace {

constexpr std::size_t kDim = 32;
constexpr std::size_t kCounts[] = {1, 40, 3000, 50000};  // from less than a chunk of rows to several chunks

TableOptions options() {
  return {.name = "t",
          .dim = kDim,
          .gradient_compression = {.codec = RowCodec::kInt4},
          .refresh_compression = {.codec = RowCodec::kInt8}};
}

std::vector<Key> keys_to(std::size_t count) {
  std::vector<Key> keys;
  for (std::size_t k = 0; k < count; ++k) keys.push_back(Key{k * 0x9E3779B97F4A7C15});
  return keys;
}

std::vector<std::uint32_t> numbers_to(std::size_t count) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// Memory blocks are up to a quarter larger than their contents.
void expect_as_planned(std::size_t taken, std::size_t planned) {
  EXPECT_GE(taken, planned);
  EXPECT_LE(taken, planned + planned / 4 + 512);
}

TEST(ResidualMemory, ResidualTableMatchesPlan) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    for (std::size_t const count : kCounts) {
      SCOPED_TRACE(count);
      auto const keys = to_device(stream, keys_to(count));
      auto const order = to_device(stream, numbers_to(count));
      Matrix<std::int64_t> const sums(device, count, kDim);
      memory::fill_bytes(stream, sums.view().data(), 1, sums.view().flat().bytes());
      std::size_t const before = memory::usage(device).bytes;
      ResidualTable table_of_residuals(device, options());
      EXPECT_LE(memory::usage(device).bytes - before, 4096U);
      table_of_residuals.wait_compress(stream, Clock{0}, keys, sums, order);
      table_of_residuals.wait_end_step(stream, false);
      EXPECT_EQ(table_of_residuals.rows(), count);
      expect_as_planned(memory::usage(device).bytes - before, ResidualTable::bytes_for(options(), count));
    }
  }
}

TEST(ResidualMemory, RowMirrorMatchesPlan) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    TableShard shard(options(), 1, 100);
    shard.allocate(device);
    for (std::size_t const count : kCounts) {
      SCOPED_TRACE(count);
      auto const keys = to_device(stream, keys_to(count));
      Matrix<float> const values(device, count, kDim);
      memory::fill_bytes(stream, values.view().data(), 0, values.view().flat().bytes());
      std::size_t const before = memory::usage(device).bytes;
      RowMirror copies(device, shard);
      EXPECT_LE(memory::usage(device).bytes - before, 4096U);
      copies.wait_send(stream, Clock{0}, keys, values);
      expect_as_planned(memory::usage(device).bytes - before, RowMirror::bytes_for(options(), count));
    }
  }
}

TEST(ResidualMemory, KeyDictionaryMatchesPlan) {
  for (std::size_t const count : kCounts) {
    SCOPED_TRACE(count);
    std::vector<Key> keys;
    for (std::uint64_t k = 1; k <= count; ++k) keys.push_back(Key{k << 40});
    KeyEncoder encoder(count);
    KeyDecoder decoder(count);
    std::vector<std::uint8_t> wire;
    encoder.encode(View<Key const>(keys), wire);
    std::string_view bytes(reinterpret_cast<char const*>(wire.data()), wire.size());
    decoder.decode(bytes, count);
    expect_as_planned(encoder.bytes(), KeyEncoder::bytes_for(count));
    expect_as_planned(decoder.bytes(), KeyDecoder::bytes_for(count));
  }
}

// Many ranks in one process, and few rows, whose gradients and changes are all delayed.
TEST(ResidualMemory, FewRowsTakeLittleOnManyRanks) {
  constexpr int kRanks = 16;
  auto const taken_by = [](TableOptions const& table) {
    std::size_t taken = 0;
    std::size_t const before = memory::usage(Device::host()).bytes;
    run_ranks(Group::threads(kRanks), [&](Group group) {
      Store store(group, {.threads = 1});
      store.add_table(table);
      auto stream = store.make_stream();
      auto const keys = keys_to(200);
      Matrix<float> rows(Device::host(), keys.size(), kDim), gradients(Device::host(), keys.size(), kDim);
      memory::fill_bytes(stream, gradients.view().data(), 0x3D, gradients.view().flat().bytes());
      for (int step = 0; step < 3; ++step) {
        TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
        auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
        store.wait_ready(batch);
        store.pull(stream, batch, std::vector<MatrixView<float>>{rows});
        store.push(stream, batch, std::vector<TableGradients>{{gradients}});
        store.advance_clock();
      }
      store.wait_applied();
      store.wait_barrier();
      if (number(store.rank()) == 0) taken = memory::usage(Device::host()).bytes - before;
      store.wait_barrier();
    });
    return taken;
  };
  TableOptions whole = options();
  whole.gradient_compression = whole.refresh_compression = {};
  constexpr std::size_t kPairs = kRanks * (kRanks - 1), kRowsOfOwner = 200 / kRanks * 3;
  std::size_t const planned =
      kPairs * (ResidualTable::bytes_for(options(), kRowsOfOwner) + 2 * RowMirror::bytes_for(options(), kRowsOfOwner));
  EXPECT_LE(planned, std::size_t{16} << 20);
  EXPECT_LE(taken_by(options()), taken_by(whole) + 2 * planned);  // buffers of messages may still be in use
}

// The error lists all remedies, as the cause is not known.
TEST(ResidualMemory, AllocationErrorSuggestsRemedies) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end a program that allocates so much";
#endif
  test::expect_error(
      [] { Array<float> const array(Device::host(), std::size_t{1} << 60); },
      {"no memory for", "are in use", "smaller batches, sums or tables", "capacity_rows", "more machines"});
}

}  // namespace
}  // namespace gpups::cache::residual_memory_test
