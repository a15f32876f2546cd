// SPDX-License-Identifier: Apache-2.0
// A rejected step leaves the residuals as they were, whether rows were added, sent, flushed or removed in it. The
// number of rows is at most the capacity.
#include "cache/feedback/residual_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::cache::residual_table_test {
namespace {

constexpr std::size_t kDim = 70, kRowsMax = 90, kRowsOfPart = 40;

TableOptions options(bool evicts, bool largest_columns) {
  TableOptions table{.name = "t", .dim = kDim, .gradient_compression = {.codec = RowCodec::kInt8}};
  table.gradient_compression.filter.age_max = 3;
  table.gradient_compression.filter.density = 0.3F;
  if (evicts) table.gradient_compression.capacity_rows = kRowsMax;
  if (largest_columns) table.gradient_compression.top_k = 10;
  return table;
}

// The sums of a step for distinct keys, in another order than the keys.
struct Part {
  Array<Key> keys;
  Matrix<std::int64_t> sums;
  Array<std::uint32_t> order;

  Part(Stream& stream, std::mt19937_64& random, std::uint64_t keys_below)
      : sums(stream.device(), kRowsOfPart, kDim),
        order(to_device(stream, test::distinct_ids(random, kRowsOfPart, kRowsOfPart))) {
    std::vector<Key> named;
    for (std::uint32_t const key : test::distinct_ids(random, kRowsOfPart, keys_below)) named.push_back(Key{key});
    keys = to_device(stream, named);
    std::size_t const stride = row_stride(kDim);
    std::vector<std::int64_t> numbers(kRowsOfPart * stride, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i % stride < kDim) numbers[i] = static_cast<std::int64_t>(random()) >> (i / stride % 3 == 0 ? 30 : 44);
    }
    copy<std::int64_t>(stream, sums.view().flat(), View<std::int64_t const>(numbers));
    stream.wait();
  }
};

std::vector<Rank> to_rank_1(std::vector<Key> const& keys) { return std::vector(keys.size(), Rank{1}); }

using Row = std::pair<std::vector<std::uint32_t>, std::vector<std::int64_t>>;  // marks and residuals
std::map<Key, Row> rows_of(ResidualChunk const& piece) {
  std::map<Key, Row> rows;
  for (std::size_t i = 0; i < piece.keys.size(); ++i) {
    auto const marks = piece.marks.begin() + static_cast<std::ptrdiff_t>(i * kernels::kResidualMarks);
    auto const sums = piece.sums.begin() + static_cast<std::ptrdiff_t>(i * kDim);
    rows[piece.keys[i]] = {{marks, marks + kernels::kResidualMarks}, {sums, sums + kDim}};
  }
  return rows;
}

class ResidualTableRejectedStep : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(ResidualTableRejectedStep, RestoresAllResiduals) {
  auto const [evicts, largest_columns, send_all] = GetParam();
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    ResidualTable table_of_residuals(device, options(evicts, largest_columns));
    std::mt19937_64 random(5);
    std::size_t late = 0, sent = 0, most_rows = 0;
    for (std::int64_t step = 0; step < 24; ++step) {
      bool const rejected = step % 3 == 2;
      auto const before = table_of_residuals.wait_save(stream)[0];
      Part const first(stream, random, 150), second(stream, random, 200);
      for (Part const* part : {&first, &second}) {
        sent += table_of_residuals.wait_compress(stream, Clock{step}, part->keys, part->sums, part->order).sent;
      }
      most_rows = std::max(most_rows, table_of_residuals.rows());
      late += table_of_residuals.wait_take_flushed(stream, Clock{step}, rejected && send_all, to_rank_1).size();
      if (evicts) {
        EXPECT_LE(table_of_residuals.rows(), kRowsMax);
      }
      EXPECT_NE(rows_of(table_of_residuals.wait_save(stream)[0]), rows_of(before));
      table_of_residuals.wait_end_step(stream, rejected);
      if (!rejected) continue;
      auto const after = table_of_residuals.wait_save(stream)[0];
      EXPECT_EQ(rows_of(after), rows_of(before)) << to_string(device) << ", step " << step;
      EXPECT_EQ(after.threshold.steps, before.threshold.steps);
      EXPECT_EQ(after.threshold.threshold, before.threshold.threshold);
    }
    EXPECT_GT(sent, 100U);
    EXPECT_GT(late, 5U);
    EXPECT_GT(most_rows, kRowsMax);
    if (evicts) {
      EXPECT_LE(most_rows, kRowsMax + 2 * kRowsOfPart);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, ResidualTableRejectedStep,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

// Every row is used once, and has a residual.
TEST(ResidualTable, CapacityBoundsMemory) {
  TableOptions const table = options(true, false);
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    std::mt19937_64 random(5);
    Part part(stream, random, kRowsOfPart);
    std::size_t const before = memory::usage(device).bytes;
    ResidualTable table_of_residuals(device, table);
    std::size_t forgotten = 0;
    constexpr std::int64_t kSteps = 60;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << to_string(device) << ", step " << step);
      part.keys = to_device(stream, test::distinct_keys(kRowsOfPart, kRowsOfPart * static_cast<std::uint64_t>(step)));
      table_of_residuals.wait_compress(stream, Clock{step}, part.keys, part.sums, part.order);
      for (auto const& late : table_of_residuals.wait_take_flushed(stream, Clock{step}, false, to_rank_1)) {
        if (late.exact) forgotten += late.keys.size();
      }
      table_of_residuals.wait_end_step(stream, step % 7 == 6);
      EXPECT_LE(table_of_residuals.rows(), kRowsMax);
      std::size_t const planned = ResidualTable::bytes_for(table, kRowsMax + kRowsOfPart);
      EXPECT_LE(memory::usage(device).bytes - before, planned + planned / 4 + 512);
    }
    EXPECT_GT(forgotten, kSteps * kRowsOfPart / 2);
  }
}

// A rank that becomes the owner of rows takes their residuals: none stays, and unknown rows have none.
TEST(ResidualTable, TakesResidualsOnce) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    std::mt19937_64 random(6);
    ResidualTable table_of_residuals(device, options(false, true));
    Part const part(stream, random, 60);
    table_of_residuals.wait_compress(stream, Clock{0}, part.keys, part.sums, part.order);
    table_of_residuals.wait_end_step(stream, false);
    auto const before = rows_of(table_of_residuals.wait_save(stream)[0]);
    std::vector<Key> known;
    for (std::uint64_t key = 0; key < 70; ++key) known.push_back(Key{key});  // of which some have a residual
    auto const all = to_device(stream, known);
    auto const taken = table_of_residuals.wait_take(stream, all);
    auto const keys = to_host(stream, taken.keys.view());
    auto const sums = to_host(stream, taken.sums.view().flat());
    ASSERT_GT(keys.size(), 10U);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      auto const row = sums.begin() + static_cast<std::ptrdiff_t>(i * row_stride(kDim));
      EXPECT_EQ(std::vector(row, row + kDim), before.at(keys[i]).second) << number(keys[i]);
    }
    EXPECT_EQ(table_of_residuals.rows(), 0U);
    EXPECT_EQ(table_of_residuals.wait_take(stream, all).keys.size(), 0U);
  }
}

}  // namespace
}  // namespace gpups::cache::residual_table_test
