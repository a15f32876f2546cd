// SPDX-License-Identifier: Apache-2.0
// Kernels that check arguments of callers: they report the first index out of range, and the first row whose values the
// table's data type cannot hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/half.hpp"
#include "kernels/rows/check_rows.hpp"
#include "kernels/rows/row_storage.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::check_arguments_test {
namespace {

class CheckArguments : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CheckArguments, test::kDevices, test::device_name);

TEST_P(CheckArguments, ReportsFirstIndexOutOfRange) {
  Stream stream(GetParam(), 3);
  std::size_t const n = 50'000;  // several blocks
  std::vector<std::uint32_t> good(n), bad(n), worse(n);
  for (std::uint32_t i = 0; i < n; ++i) good[i] = bad[i] = worse[i] = i % 1000;
  bad[n - 1] = 1000;
  worse[30'000] = 0xFFFFFFFF;
  worse[20'001] = 1001;
  auto const a = to_device(stream, good), b = to_device(stream, bad), c = to_device(stream, worse);
  std::vector<RowNumbersPart> const parts{{a, 1000}, {b, 1000}, {c, 1000},           {{}, 0},
                                          {a, 0},    {b, 1001}, {c, ~std::size_t{0}}};
  Array<std::uint32_t> const bad_rows(stream.device(), parts.size());
  check_row_numbers(stream, {.parts = parts, .bad_rows = bad_rows});
  EXPECT_EQ(to_host(stream, bad_rows.view()),
            (std::vector<std::uint32_t>{kNoRow, 49'999, 20'001, kNoRow, 0, kNoRow, kNoRow}));
}

TEST_P(CheckArguments, ReportsFirstRowThatOverflowsItsType) {
  Stream stream(GetParam(), 3);
  Array<std::uint32_t> const bad_row(stream.device(), 1);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t const columns : {1, 3, 40}) {
    Matrix<float> rows(Device::host(), 1000, columns);
    for (std::size_t i = 0; i < 1000; ++i) std::fill_n(rows.row(i).data(), columns, -65504.0F);
    auto const first = [&](float limit) {
      auto const there = test::moved<float const>(stream, stream.device(), rows);
      check_values(stream, {.rows = there, .limit = limit, .bad_row = bad_row});
      return to_host(stream, bad_row.view())[0];
    };
    EXPECT_EQ(first(largest_kept(DataType::kFloat)), kNoRow);
    EXPECT_EQ(first(largest_kept(DataType::kHalf)), kNoRow);
    EXPECT_EQ(first(65503), 0U);
    for (float const value : {kInfinity, -kInfinity, kNan, 65520.0F}) {
      rows.row(990)[columns - 1] = kNan;
      rows.row(700)[columns - 1] = value;
      EXPECT_EQ(first(largest_kept(DataType::kHalf)), 700U) << value;
    }
  }
}

// The largest kept float rounds to a finite number of the type, and the next larger float rounds to infinity.
TEST(LargestKept, IsLargestFloatThatRoundsToFinite) {
  float const half = largest_kept(DataType::kHalf), bfloat = largest_kept(DataType::kBFloat16);
  EXPECT_EQ(to_float(round_to<Half>(half)), 65504.0F);
  EXPECT_TRUE(std::isinf(to_float(round_to<Half>(std::nextafter(half, 1e38F)))));
  EXPECT_TRUE(std::isfinite(to_float(round_to<BFloat16>(bfloat))));
  EXPECT_TRUE(std::isinf(to_float(round_to<BFloat16>(std::nextafter(bfloat, 3.4028e38F)))));
}

}  // namespace
}  // namespace gpups::kernels::check_arguments_test
