// SPDX-License-Identifier: Apache-2.0
// Difficult sums: large cancellation, the smallest floats, and the limits of the fast path and of int64.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/sum/merge_gradients.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test::exact_sums_test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;

struct Sums {
  std::vector<std::int64_t> values;  // (rows, 1), of stride 4
  std::uint32_t bad_row;
};

// Computes sums with one column; sum r is that of the products in rows[r].
Sums sum(Device device, std::vector<std::vector<Product>> const& rows, int grid_log2, double contribution_max) {
  Stream stream(device, 2);
  Ids offsets{0}, order;
  std::vector<float> sources, coefficients;
  for (auto const& products : rows) {
    for (auto const& [c, x] : products) {
      order.push_back(static_cast<std::uint32_t>(order.size()));
      coefficients.push_back(c);
      sources.insert(sources.end(), {x, 77, 77, 77});  // the padding must not matter
    }
    offsets.push_back(static_cast<std::uint32_t>(order.size()));
  }
  auto const source_rows = matrix(stream, sources, order.size(), 1);
  auto const offsets_there = to_device(stream, offsets), order_there = to_device(stream, order),
             bad_row = to_device(stream, Ids{kNoRow});
  auto const coefficients_there = to_device(stream, coefficients);
  Matrix<std::int64_t> const sums(device, rows.size(), 1);
  kernels::sum_gradients(
      stream,
      {offsets_there, order_there, {}, source_rows, coefficients_there, grid_log2, sums, bad_row, contribution_max});
  return {to_host(stream, sums.view().flat()), to_host(stream, bad_row.view())[0]};
}

void expect_like_oracle(std::vector<std::vector<Product>> const& rows, int grid_log2,
                        double contribution_max = std::numeric_limits<double>::infinity()) {
  for (Device const device : devices()) {
    auto const got = sum(device, rows, grid_log2, contribution_max);
    std::uint32_t bad_row = kNoRow;
    for (std::uint32_t r = 0; r < rows.size(); ++r) {
      auto const want = exact_sum(rows[r], grid_log2);
      if (!want) {
        bad_row = std::min(bad_row, r);
        continue;
      }
      EXPECT_EQ(got.values[r * 4], *want) << to_string(device) << " row " << r << " grid " << grid_log2;
      EXPECT_EQ(got.values[r * 4 + 1], 0) << "padding";
    }
    EXPECT_EQ(got.bad_row, bad_row) << to_string(device);
  }
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

TEST(ExactSums, SmallNumbersAreRoundedDown) {
  expect_like_oracle({{{kTiny, kTiny}}, {{-kTiny, kTiny}}, {{kTiny, 1}, {-1, kTiny}}, {{0, -1}}, {{-0.0F, 1}}, {}},
                     -30);
  expect_like_oracle({{{1, 0x1p-31F}}, {{-1, 0x1p-31F}}, {{1, 0x1p-30F}}, {{-1, 0x1p-30F}}, {{-1, 0x1.000002p-30F}}},
                     -30);
}

TEST(ExactSums, CancellationIsExact) {
  std::vector<Product> row;
  for (int k = 0; k < 40; ++k) {
    float const big = std::ldexp(1.0F, k % 29);
    row.insert(row.end(), {{big, 1.0F + 0x1p-23F}, {0.1F, 0.3F}, {-big, 1.0F + 0x1p-23F}});
  }
  expect_like_oracle({row, {{0x1p31F, 1}, {-0x1p31F, 1}, {1, 1}}}, -30);
}

// The fast path holds 2^51 units. A sum that leaves this range and returns to it must still be exact.
TEST(ExactSums, SumsBeyondTheFastRangeAreExact) {
  float const edge = 0x1p21F, below = 0x1.fffffep20F;
  expect_like_oracle({{{1, edge}},
                      {{1, below}, {1, 0x1p-3F}, {1, 0x1p-30F}},
                      {{-1, edge}},
                      {{-1, edge}, {-1, 0x1p-30F}},
                      {{1, edge}, {1, 0x1.8p-30F}, {-1, edge}},
                      {{-1, edge}, {-1, 0x1.8p-30F}, {1, edge}},
                      {{1, 0x1p30F}, {0.7F, 0.9F}, {-1, 0x1p30F}, {1, 0x1.234p-20F}}},
                     -30);
}

// If the caller gives the largest contribution, additions are not checked for overflow. Sums up to the limit of the
// fast path and beyond it must be exact.
TEST(ExactSums, GivenContributionBoundKeepsResults) {
  float const half = 0x1p20F, below = 0x1.fffffep19F;  // 2^50 units
  expect_like_oracle({{{1, below}, {1, below}},
                      {{-1, below}, {-1, below}},
                      {{1, half}, {1, half}, {-1, half}, {1, 0x1p-30F}},
                      {{-1, half}, {-1, half}, {-1, 0x1p-30F}, {1, half}},
                      {{0.3F, 0.7F}}},
                     -30, 0x1p50 + 1);
}

TEST(ExactSums, ReportsContributionsAboveTheGivenBound) {
  expect_like_oracle({{{1, 1}}, {{1, 0.5F}, {1, kNan}}}, -30, 0x1p30);
  expect_like_oracle({{{1, -kInf}}, {{1, 1}}}, -30, 0x1p30);
  expect_like_oracle({{{1, 0x1p34F}}, {{1, 1}}}, -30, 0x1p30);
}

TEST(ExactSums, ReportsOverflowOfTheFinalSum) {
  std::vector<Product> const most{{1, 0x1.fffffep32F}};
  expect_like_oracle({most, {{1, 0x1p33F}}}, -30);
  expect_like_oracle({most, {{-1, 0x1p33F}}, {{-1, 0x1p33F}, {-1, 0x1p-30F}}}, -30);
  expect_like_oracle({{{1, 0x1p32F}, {1, 0x1p32F}, {-1, 0x1p32F}}, most, {{1, 0x1p32F}, {1, 0x1p32F}}}, -30);
  // Many entries, so that a GPU splits the row.
  std::vector<Product> back_and_forth;
  for (int k = 0; k < 300; ++k) back_and_forth.push_back({k < 150 ? 1.0F : -1.0F, 0x1.8p32F});
  expect_like_oracle({back_and_forth}, -30);
  back_and_forth.insert(back_and_forth.end(), {{1, 0x1.8p32F}, {1, 0x1.8p32F}});
  expect_like_oracle({{{1, 1}}, back_and_forth}, -30);
}

// Long rows are summed in pieces. The sum of a piece may overflow although the sum of the row does not.
TEST(ExactSums, VeryLongRowsAreExact) {
  Random random(3);
  std::vector<Product> plain, there_and_back, too_much;
  for (int k = 0; k < 7001; ++k) {
    plain.push_back({static_cast<float>(uniform(random) - 0.5), static_cast<float>(uniform(random))});
    there_and_back.push_back({k < 3000 ? 1.0F : k < 6000 ? -1.0F : 0.1F, 0x1.8p32F});
    too_much.push_back({k % 2 == 0 ? 1.0F : -0.5F, 0x1.8p32F});
  }
  for (int k = 6000; k < 7001; ++k) there_and_back[static_cast<std::size_t>(k)].source = 0.3F;
  expect_like_oracle({plain, {{1, 1}}, there_and_back, {}, plain}, -30);
  expect_like_oracle({{{1, 1}}, too_much, plain}, -30);
  plain[6500].source = kNan;
  expect_like_oracle({there_and_back, plain}, -30);
}

TEST(ExactSums, ReportsFirstRowThatIsNotFinite) {
  for (float bad : {kInf, -kInf, kNan}) {
    expect_like_oracle({{{1, 1}}, {{1, 2}, {1, bad}}, {{bad, 1}}}, -30);
    expect_like_oracle({{{1, 1}}, {{0.5F, 2}}, {{bad, 0}}}, -30);
  }
  expect_like_oracle({{{1, kInf}, {1, -kInf}}}, -30);
  expect_like_oracle({{{3e38F, 3e38F}}}, -30);
  expect_like_oracle({{{3e38F, 3e38F}, {-3e38F, 3e38F}}}, -30);
}

TEST(ExactSums, RandomNumbersOfAllMagnitudesAreExact) {
  Random random(5);
  for (int grid_log2 : {-60, -30, -7, 0, 20}) {
    std::vector<std::vector<Product>> rows(300);
    for (auto& row : rows) {
      auto const number = [&](int from, int to) {
        int const exponent = from + static_cast<int>(below(random, static_cast<std::uint64_t>(to - from)));
        return std::ldexp(static_cast<float>(uniform(random) * 2 - 1), exponent);
      };
      for (std::size_t k = below(random, 120); k > 0; --k) row.push_back({number(-8, 4), number(-60, grid_log2 + 58)});
    }
    expect_like_oracle(rows, grid_log2);
  }
}

TEST(MergeSums, ReportsFirstRowThatOverflows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kLeast = -kMost - 1;
  for (Device const device : devices()) {
    Stream stream(device, 2);
    auto const into =
        matrix<std::int64_t>(stream, {1, 0, 0, 0, kLeast, 0, 0, 0, kMost, 0, 0, 0, kLeast, 0, 0, 0}, 4, 1);
    auto const from = matrix<std::int64_t>(stream, {1, 0, 0, 0, kMost, 0, 0, 0, -1, 0, 0, 0}, 3, 1);
    auto const bad_row = to_device(stream, Ids{kNoRow});
    kernels::merge_sums(stream, {into, to_device(stream, Ids{2, 1, 0}), from, bad_row});
    EXPECT_EQ(to_host(stream, bad_row.view())[0], 2U);
    auto const sums = to_host(stream, into.view().flat());
    EXPECT_EQ(sums[4], -1);
    EXPECT_EQ(sums[0], 0);
    auto const again = to_device(stream, Ids{kNoRow});
    kernels::merge_sums(stream, {into, to_device(stream, Ids{0, 2, 3}), from, again});
    EXPECT_EQ(to_host(stream, again.view())[0], 3U);
  }
}

}  // namespace
}  // namespace gpups::test::exact_sums_test
