// SPDX-License-Identifier: Apache-2.0
// Properties of the wire formats beyond the error of one row: no bias, no loss over many steps, sizes, and special
// values.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "kernels/codec/quantize_buckets.hpp"
#include "kernels/codec/quantize_rows.hpp"
#include "kernels/codec/quantize_sums.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/wire_oracle.hpp"

namespace gpups::test::quantize_test {
namespace {

using kernels::Format;
using kernels::Rounding;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Sent {
  std::vector<float> decoded, residual;
};
constexpr std::size_t kDim = 4;  // columns of a row, unless the test gives another number

Sent send(Device device, Format format, std::vector<float> const& values, std::vector<float> const& rest,
          Rounding rounding = Rounding::kNearest, kernels::RoundingKey rounding_key = {}, std::size_t dim = kDim) {
  Stream stream(device, 2);
  std::size_t const n = values.size() / dim;
  auto const values_there = matrix(stream, values, n, dim);
  auto const residual = matrix(stream, rest, rest.size() / dim, dim);
  Matrix<float> const out(device, n, dim);
  Array<std::uint8_t> const bytes(device, encoded_bytes(format, n, dim));
  kernels::quantize_rows(
      stream, {values_there, residual, kernels::encoded_rows(bytes.view(), format, n, dim), rounding, rounding_key});
  kernels::dequantize_rows(stream,
                           {kernels::encoded_rows(View<std::uint8_t const>(bytes.view()), format, n, dim), out});
  return {to_host(stream, out.view().flat()), to_host(stream, residual.view().flat())};
}

TEST(Quantize, WireSizesMatchTheFormat) {
  EXPECT_EQ(kernels::encoded_bytes(Format::kFloat, 10, 100), 4000U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kHalf, 10, 101), 2040U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kE5M2, 10, 64), 680U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kInt8, 10, 64), 680U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kInt4, 10, 100), 560U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kInt2, 10, 100), 320U);
  EXPECT_EQ(kernels::encoded_bytes(Format::kInt2, 0, 100), 0U);
  EXPECT_EQ(kernels::bucket_bytes(Format::kInt4, 1030, 512), 2U * 260 + 8);
}

TEST(Quantize, StochasticRoundingHasNoBias) {
  // Columns of value 1 set the scale; the other columns are a million draws for one value.
  constexpr std::size_t kRows = 1000, kColumns = 1008, kDraws = kRows * (kColumns - 8);
  for (Device const device : devices()) {
    for (float const value : {0.3F, -0.77F, 0.004F}) {
      std::vector<float> values(kRows * kColumns, value);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % kColumns < 8 ? 1 : value;
      for (auto const& [format, most] : {std::pair{Format::kInt8, 127}, {Format::kInt4, 7}, {Format::kInt2, 1}}) {
        auto const decoded =
            send(device, format, values, {}, Rounding::kStochastic, {.seed = 5, .use = 1}, kColumns).decoded;
        double sum = 0;
        std::set<float> seen;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (i % kColumns < 8) continue;
          sum += static_cast<double>(decoded[i]);
          seen.insert(decoded[i]);
        }
        double const step = 1.0 / most, place = static_cast<double>(value) / step, up = place - std::floor(place);
        double const sigma = step * std::sqrt(up * (1 - up) / kDraws);
        EXPECT_NEAR(sum / kDraws, static_cast<double>(value), 3 * sigma + 0x1p-17 * step) << value << " by " << step;
        EXPECT_EQ(seen.size(), 2U) << value << " by " << step;
      }
    }
  }
}

TEST(Quantize, StochasticDrawsDependOnTheRow) {
  Random random(1);
  auto const values = floats(random, 10, kDim);
  std::vector<float> const second(values.begin() + 6 * kDim, values.end());
  for (Device const device : devices()) {
    auto const all = send(device, Format::kInt2, values, {}, Rounding::kStochastic, {.seed = 1, .use = 2}).decoded;
    auto const part = send(device, Format::kInt2, second, {}, Rounding::kStochastic, {1, 2, /*first_row=*/6}).decoded;
    EXPECT_EQ(differ("part", part, {all.begin() + 6 * kDim, all.end()}), "");
    for (kernels::RoundingKey const other :
         {kernels::RoundingKey{2, 2}, kernels::RoundingKey{1, 3}, kernels::RoundingKey{1, 2, 1}}) {
      EXPECT_NE(send(device, Format::kInt2, values, {}, Rounding::kStochastic, other).decoded, all);
    }
  }
}

// The sum of all decoded values and the last residual is the sum of all values that were to be sent.
TEST(Quantize, ResidualsPreserveTheSumOverManySteps) {
  constexpr int kSteps = 200;
  for (Device const device : devices()) {
    for (Format const format : kernels::kFormats) {
      Random random(3);
      std::vector<double> sent(5 * kDim, 0), got(5 * kDim, 0);
      std::vector<float> residual(5 * kDim, 0);
      for (int step = 0; step < kSteps; ++step) {
        auto const values = floats(random, 5, kDim);
        auto const now = send(device, format, values, residual);
        residual = now.residual;
        for (std::size_t i = 0; i < sent.size(); ++i) {
          sent[i] += static_cast<double>(values[i]);
          got[i] += static_cast<double>(now.decoded[i]);
        }
      }
      for (std::size_t i = 0; i < sent.size(); ++i) {
        // Each step rounds s = values + residual, here below 4, and possibly s - decoded.
        EXPECT_NEAR(got[i] + static_cast<double>(residual[i]), sent[i], kSteps * 0x1p-21) << static_cast<int>(format);
      }
    }
  }
}

TEST(Quantize, NonfiniteValueAffectsOnlyItsRow) {
  std::vector<float> const good{1, 2, 3, 4}, rest{0.5F, 0.5F, 0.5F, 0.5F};
  for (Device const device : devices()) {
    for (float const bad : {kInfinity, -kInfinity, kNan, 3e38F}) {
      std::vector<float> values{1, bad, 1, 1}, residual = rest;
      values.insert(values.end(), good.begin(), good.end());
      residual.insert(residual.end(), rest.begin(), rest.end());
      auto const scaled = send(device, Format::kInt8, values, residual);
      for (std::size_t j = 0; j < kDim; ++j) {
        EXPECT_TRUE(std::isnan(scaled.decoded[j]));
        EXPECT_EQ(scaled.residual[j], 0.5F);
        EXPECT_NEAR(scaled.decoded[kDim + j], good[j] + rest[j], 0.02);
      }
      auto const half = send(device, Format::kHalf, values, residual);
      EXPECT_EQ(half.decoded[0], 1.5F);
      if (bad == 3e38F) {
        EXPECT_EQ(half.decoded[1], 65504);
        EXPECT_EQ(half.residual[1], 3e38F - 65504);
      } else {
        EXPECT_TRUE(std::isnan(half.decoded[1]));
        EXPECT_EQ(half.residual[1], 0.5F);
      }
    }
  }
}

TEST(Quantize, TinyRowsStayInTheResidual) {
  std::vector<float> const values{1e-40F, -1e-45F, 0x1p-101F, 0};
  for (Device const device : devices()) {
    for (Format const format : {Format::kE4M3, Format::kE5M2, Format::kInt8, Format::kInt2}) {
      auto const sent = send(device, format, values, std::vector<float>(kDim, 0));
      EXPECT_EQ(differ("decoded", sent.decoded, std::vector<float>(kDim, 0)), "");
      EXPECT_EQ(differ("residual", sent.residual, values), "");
    }
  }
}

struct SentSums {
  std::vector<std::int64_t> decoded, residual;
  std::uint32_t bad_row;
};

SentSums send_sums(Device device, Format format, std::vector<std::int64_t> const& sums,
                   std::vector<std::int64_t> const& rest) {
  Stream stream(device, 2);
  std::size_t const n = sums.size() / kDim;
  auto const sums_there = matrix(stream, sums, n, kDim), residual = matrix(stream, rest, n, kDim);
  auto const out = matrix(stream, std::vector<std::int64_t>(sums.size(), 0), n, kDim);
  auto const bad_row = to_device(stream, std::vector<std::uint32_t>{kernels::kNoRow});
  Array<std::uint8_t> const bytes(device, encoded_bytes(format, n, kDim));
  kernels::quantize_sums(stream,
                         {sums_there, residual, kernels::encoded_rows(bytes.view(), format, n, kDim), -30, bad_row});
  kernels::add_dequantized_sums(
      stream, {kernels::encoded_rows(View<std::uint8_t const>(bytes.view()), format, n, kDim), {}, out, -30});
  return {to_host(stream, out.view().flat()), to_host(stream, residual.view().flat()),
          to_host(stream, bad_row.view())[0]};
}

TEST(QuantizeSums, SmallSumsAreExact) {
  std::vector<std::int64_t> const sums{127, -127, 1, 0}, rest{0, 0, -5, 0};
  for (Device const device : devices()) {
    for (Format const format : {Format::kFloat, Format::kHalf, Format::kBFloat16, Format::kInt8}) {
      auto const sent = send_sums(device, format, sums, rest);
      // Half cannot represent 127 units of 2^-30 exactly.
      bool const exact = sent.decoded == std::vector<std::int64_t>{127, -127, -4, 0};
      EXPECT_EQ(exact, format != Format::kHalf) << static_cast<int>(format);
      for (std::size_t j = 0; j < kDim; ++j) EXPECT_EQ(sent.decoded[j] + sent.residual[j], sums[j] + rest[j]);
    }
  }
}

TEST(QuantizeSums, LargestSumsAreExactAndOverflowIsReported) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62, kMax = std::numeric_limits<std::int64_t>::max();
  for (Device const device : devices()) {
    for (Format const format : kernels::kFormats) {
      auto const most = send_sums(device, format, {kMost, -kMost, kMost - 1, 3}, {0, 0, 1, 0});
      EXPECT_EQ(most.bad_row, kernels::kNoRow);
      EXPECT_EQ(most.decoded[0] + most.residual[0], kMost);
      EXPECT_EQ(most.decoded[1] + most.residual[1], -kMost);
      EXPECT_EQ(most.decoded[2] + most.residual[2], kMost);
      EXPECT_EQ(most.decoded[3] + most.residual[3], 3);
      EXPECT_EQ(send_sums(device, format, {1, 1, 1, 1, kMost, 0, 0, 0}, {0, 0, 0, 0, 1, 0, 0, 0}).bad_row, 1U);
      EXPECT_EQ(send_sums(device, format, {1, 1, kMax, 1, kMax, 0, 0, 0}, {0, 0, kMax, 0, 1, 0, 0, 0}).bad_row, 0U);
    }
  }
}

TEST(QuantizeSums, ClippedHalfValuesStayInTheResidual) {
  constexpr std::int64_t kOne = std::int64_t{1} << 30, kCut = 65504 * kOne;
  for (Device const device : devices()) {
    auto const sent =
        send_sums(device, Format::kHalf, {70000 * kOne, -100000 * kOne, kCut, 65519 * kOne}, {5 * kOne, 1, 0, kOne});
    EXPECT_EQ(sent.bad_row, kernels::kNoRow);
    EXPECT_EQ(sent.decoded, (std::vector<std::int64_t>{kCut, -kCut, kCut, kCut}));
    EXPECT_EQ(sent.residual, (std::vector<std::int64_t>{4501 * kOne, -34496 * kOne + 1, 0, 16 * kOne}));
  }
}

TEST(QuantizeBuckets, LastBucketMayBeShorter) {
  Random random(9);
  for (Device const device : devices()) {
    Stream stream(device, 2);
    for (std::size_t const n : {0, 5, 64, 64 * 7 + 33}) {
      for (Format const format : kernels::kFormats) {
        std::vector<float> values(n), before(n);
        for (float& x : values) x = static_cast<float>(uniform(random) - 0.5);
        for (float& x : before) x = static_cast<float>(uniform(random) - 0.5);
        auto const values_there = to_device(stream, values), residual = to_device(stream, before);
        Array<std::uint8_t> const wire(device, kernels::bucket_bytes(format, n, 64));
        auto const out = to_device(stream, std::vector<float>(n, 1));
        kernels::quantize_buckets(
            stream, {.values = values_there, .residual = residual, .format = format, .bucket = 64, .encoded = wire});
        kernels::dequantize_buckets(stream, {wire, format, 64, out});
        auto const decoded = to_host(stream, out.view()), rest = to_host(stream, residual.view());
        kernels::dequantize_buckets(stream, {wire, format, 64, out, /*add=*/true});
        auto const twice = to_host(stream, out.view());
        for (std::size_t i = 0; i < n; ++i) {
          float const sum = values[i] + before[i];
          EXPECT_NEAR(decoded[i], sum, error_max(format, static_cast<double>(sum), 1));
          EXPECT_EQ(rest[i], sum - decoded[i]);
          EXPECT_EQ(twice[i], 2 * decoded[i]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpups::test::quantize_test
