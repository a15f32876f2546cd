// SPDX-License-Identifier: Apache-2.0
// Mirrors of another rank's rows: both ends keep the same rows, at most as many as the capacity, in bounded memory.
#include "cache/feedback/row_mirror.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::cache::row_mirror_test {
namespace {

constexpr std::size_t kDim = 32, kRowsMax = 90, kRowsOfStep = 40;

TableOptions options() {
  TableOptions table{.name = "t", .dim = kDim, .refresh_compression = {.codec = RowCodec::kInt8}};
  table.refresh_compression.capacity_rows = kRowsMax;
  return table;
}

std::vector<Key> keys_of(Stream& stream, RowMirror const& copies) {
  auto keys = copies.wait_save(stream).keys;
  std::sort(keys.begin(), keys.end());
  return keys;
}

struct Ends {
  RowMirror owner, reader;

  Ends(Device device, TableShard const& shard) : owner(device, shard), reader(device, shard) {}
  // Runs a step in which every row differs from its mirror.
  void wait_step(Stream& stream, std::int64_t step, std::vector<Key> const& keys) {
    auto const there = to_device(stream, keys);
    test::Random random(static_cast<std::uint64_t>(step));
    auto const values = test::matrix(stream, test::floats(random, keys.size(), kDim), keys.size(), kDim);
    Matrix<float> const out(stream.device(), keys.size(), kDim);
    auto const part = owner.wait_send(stream, Clock{step}, there, values);
    ASSERT_TRUE(reader.wait_read(stream, Clock{step}, there, part.bytes->view(), part.sent, out));
    EXPECT_EQ(keys_of(stream, owner), keys_of(stream, reader));
  }
};

TEST(RowMirror, CapacityBoundsRowsAndMemory) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    TableShard shard(options(), 1, 100);
    shard.allocate(device);
    std::size_t const before = memory::usage(device).bytes;
    Ends ends(device, shard);
    std::size_t most = 0;
    for (std::int64_t step = 0; step < 60; ++step) {
      SCOPED_TRACE(testing::Message() << to_string(device) << ", step " << step);
      ends.wait_step(stream, step, test::distinct_keys(kRowsOfStep, kRowsOfStep * static_cast<std::uint64_t>(step)));
      auto const keys = keys_of(stream, ends.owner);
      EXPECT_LE(keys.size(), kRowsMax);
      most = std::max(most, keys.size());
      // The rows of a step are added before the least recently used ones are removed.
      std::size_t const planned = 2 * RowMirror::bytes_for(options(), kRowsMax + kRowsOfStep);
      EXPECT_LE(memory::usage(device).bytes - before, planned + planned / 4 + 1024);
    }
    EXPECT_GT(most, kRowsMax / 2);
  }
}

// A step with more rows than the capacity keeps them all until the next step.
TEST(RowMirror, KeepsAllRowsOfOneStep) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    TableShard shard(options(), 1, 100);
    shard.allocate(device);
    Ends ends(device, shard);
    ends.wait_step(stream, 0, test::distinct_keys(kRowsMax + 30));
    EXPECT_EQ(keys_of(stream, ends.owner).size(), kRowsMax + 30);
    auto few = test::distinct_keys(5, 1000);
    ends.wait_step(stream, 1, few);
    std::sort(few.begin(), few.end());
    EXPECT_EQ(keys_of(stream, ends.owner), few);
  }
}

}  // namespace
}  // namespace gpups::cache::row_mirror_test
