// SPDX-License-Identifier: Apache-2.0
// Summing and updating in one pass gives the same bits as two passes.
#include "kernels/update/sum_and_update.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels::sum_and_update_test {
namespace {

template <class T>
struct Table {
  Table(Stream& stream, std::size_t rows, std::size_t dim, Optimizer const& optimizer)
      : values(Device::host(), row_stride(dim, kNumberType<T>), NewRows::kZero),
        state(Device::host(), state_columns(optimizer, dim), NewRows::kZero),
        lifecycle(Device::host(), kLifecycleWords, NewRows::kZero),
        keys(Device::host(), 1),
        bad_row(to_device(stream, std::vector{kNoRow})) {
    values.reserve(stream, rows);
    state.reserve(stream, rows);
    lifecycle.reserve(stream, rows);
    keys.reserve(stream, rows);
    for (std::uint32_t id = 0; id < rows; ++id) *keys.ref().row(id) = id * 7919;
  }
  RowStorage<T> values;
  RowStorage<float> state;
  RowStorage<std::uint32_t> lifecycle;
  RowStorage<std::uint64_t> keys;
  Array<std::uint32_t> bad_row;
};

template <class T = float>
void expect_same_bits(std::size_t dim, Optimizer const& optimizer, int threads) {
  SCOPED_TRACE(testing::Message() << "optimizer " << static_cast<int>(optimizer.kind) << ", dim " << dim);
  constexpr std::size_t kRows = 300, kEntries = 9000, kFewest = 7000, kSources = 500;
  Stream stream(Device::host(), threads);
  std::mt19937_64 random(dim);
  std::vector<std::uint32_t> ids, offsets{0}, order, numbers;
  std::vector<float> coefficients;
  for (std::uint32_t r = 0; r < kRows; ++r) ids.push_back(kRows - 1 - r);
  for (std::uint32_t e = 0; e < kEntries; ++e) {
    order.push_back(e);
    numbers.push_back(static_cast<std::uint32_t>(random() % kSources));
    coefficients.push_back(static_cast<float>(random() % 1000) / 500 - 1);
  }
  // The first row has so many entries that it is summed in pieces.
  for (std::size_t r = 1; r < kRows; ++r) {
    offsets.push_back(static_cast<std::uint32_t>(kFewest + random() % (kEntries - kFewest + 1)));
  }
  offsets.push_back(kEntries);
  std::sort(offsets.begin(), offsets.end());
  Matrix<float> sources(Device::host(), kSources, dim);
  memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
  for (std::size_t i = 0; i < kSources; ++i) {
    for (float& x : sources.row(i)) x = static_cast<float>(random() % 1000) / 1000 - 0.5F;
  }

  Table<T> apart(stream, kRows, dim, optimizer), at_once(stream, kRows, dim, optimizer);
  // A value of -0 shows the sign of a sum of 0: rows without entries have such sums.
  for (auto* const table : {&apart, &at_once}) {
    for (std::uint32_t id = 0; id < kRows; ++id) std::fill_n(table->values.ref().row(id), dim, round_to<T>(-0.0F));
  }
  Matrix<std::int64_t> sums(Device::host(), kRows, dim);
  for (int step = 0; step < 3; ++step) {
    auto const update = [&](Table<T>& table) {
      return UpdateRows{.ids = View<std::uint32_t const>(ids),
                        .sums = sums,
                        .values = table.values.ref(),
                        .state = table.state.ref(),
                        .lifecycle = table.lifecycle.ref(),
                        .dim = dim,
                        .grid_log2 = -30,
                        .scale = 1.0 / 7,
                        .optimizer = optimizer,
                        .rate = 0.1F,
                        .step = 5,
                        .admission_count = 1,
                        .bad_row = table.bad_row,
                        .keys = table.keys.const_ref(),
                        .rounding_seed = 3};
    };
    SumGradients gradients{.offsets = View<std::uint32_t const>(offsets),
                           .order = View<std::uint32_t const>(order),
                           .sources = View<std::uint32_t const>(numbers),
                           .source_rows = sources,
                           .coefficients = View<float const>(coefficients),
                           .grid_log2 = -30,
                           .sums = sums,
                           .bad_row = apart.bad_row};
    sum_gradients(stream, gradients);
    update_rows(stream, update(apart));
    gradients.contribution_max = contribution_max(1.0F, 0.5F, gradients.grid_log2);
    sum_and_update(stream, {.gradients = gradients, .update = update(at_once)});
  }
  EXPECT_EQ(apart.bad_row[0], kNoRow);
  EXPECT_EQ(at_once.bad_row[0], kNoRow);
  bool moved = false;
  for (std::uint32_t id = 0; id < kRows; ++id) {
    ASSERT_EQ(*apart.lifecycle.ref().row(id), *at_once.lifecycle.ref().row(id));
    for (std::size_t j = 0; j < dim; ++j) {
      float const value = to_float(apart.values.ref().row(id)[j]);
      float const same = to_float(at_once.values.ref().row(id)[j]);
      ASSERT_EQ(value, same) << "row " << id << " column " << j;
      ASSERT_EQ(std::signbit(value), std::signbit(same)) << "row " << id << " column " << j;
      moved = moved || value != 0;
    }
    for (std::size_t j = 0; j < state_columns(optimizer, dim); ++j) {
      ASSERT_EQ(apart.state.ref().row(id)[j], at_once.state.ref().row(id)[j]);
    }
  }
  EXPECT_TRUE(moved);
}

TEST(SumAndUpdate, HasTheBitsOfSeparatePasses) {
  for (std::size_t dim : {1, 3, 16, 100, 130}) {
    for (auto kind : {Optimizer::Kind::kSgd, Optimizer::Kind::kAdagrad, Optimizer::Kind::kRowwiseAdagrad,
                      Optimizer::Kind::kAdam, Optimizer::Kind::kLamb, Optimizer::Kind::kFtrl}) {
      for (int threads : {1, 2}) expect_same_bits(dim, {.kind = kind}, threads);
      expect_same_bits<Half>(dim, {.kind = kind}, 2);
      expect_same_bits<BFloat16>(dim, {.kind = kind}, 2);
    }
  }
  Optimizer const clipping{.kind = Optimizer::Kind::kAdagrad, .l2 = 0.1F, .clip_norm = 0.01F};
  expect_same_bits(100, clipping, 2);
  expect_same_bits<BFloat16>(100, clipping, 2);
}

TEST(SumAndUpdate, MaxAbsIsInfiniteForNonfiniteElements) {
  Stream stream(Device::host(), 2);
  for (std::size_t columns : {5, 16}) {  // with padding, whose values do not matter, and without
    Matrix<float> rows(Device::host(), 1000, columns);
    for (float& x : rows.view().flat()) x = 100;
    for (std::size_t i = 0; i < rows.rows(); ++i) std::fill_n(rows.row(i).begin(), columns, -0.5F);
    EXPECT_EQ(wait_max_abs(stream, rows), 0.5F);
    rows.row(700)[4] = -3.0F;
    EXPECT_EQ(wait_max_abs(stream, rows), 3.0F);
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      rows.row(999)[2] = bad;
      EXPECT_TRUE(std::isinf(wait_max_abs(stream, rows)));
    }
  }
  EXPECT_EQ(wait_max_abs(stream, MatrixView<float const>{}), 0.0F);
}

TEST(SumAndUpdate, BoundsSumsByContributionMax) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(contribution_max(0.5F, 3.0F, -30), 0x1.8p30 + 1);
  EXPECT_TRUE(has_sums_within(1000, contribution_max(1.0F, 1.0F, -30)));
  EXPECT_TRUE(has_sums_within(0, contribution_max(0.0F, 0.0F, -60)));
  EXPECT_FALSE(has_sums_within(1000, contribution_max(1.0F, 1e20F, -30)));
  EXPECT_FALSE(has_sums_within(1000, contribution_max(1.0F, kInf, -30)));
  EXPECT_FALSE(has_sums_within(1000, contribution_max(0.0F, kInf, -30)));  // not a number
  EXPECT_FALSE(has_sums_within(std::size_t{1} << 33, contribution_max(1.0F, 1.0F, -30)));
}

}  // namespace
}  // namespace gpups::kernels::sum_and_update_test
