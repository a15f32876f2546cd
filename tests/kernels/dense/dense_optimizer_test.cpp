// SPDX-License-Identifier: Apache-2.0
// Exact sums of dense gradients, compared with sums in 128-bit integers, and steps of optimizers, compared with loops
// in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/base/contribution.hpp"
#include "kernels/dense/dense_units.hpp"
#include "kernels/dense/sum_parts.hpp"
#include "kernels/dense/update_dense.hpp"
#include "tests/support/dense_optimizer_oracle.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test::dense_optimizer_test {
namespace {

using namespace kernels;
using Kind = DenseOptimizer::Kind;

struct Sums {
  std::vector<std::int64_t> sums;
  std::uint32_t bad_element;
};
Sums sums_of(Matrix<float> const& parts, int grid_log2, int threads = 1) {
  Sums s{std::vector<std::int64_t>(parts.columns(), -1), kNoRow};
  Stream stream(Device::host(), threads);
  sum_parts(stream, {parts, grid_log2, s.sums, {&s.bad_element, 1}});
  return s;
}

TEST(SumParts, SumsPartsRoundedDownToTheGrid) {
  Random random(1);
  for (std::size_t n : {0, 1, 3, 511, 1023, 1024, 1025, 5000}) {
    for (std::size_t p : {0, 1, 2, 33}) {
      for (int grid_log2 : {-30, -3, 2}) {
        Matrix<float> const parts(Device::host(), p, n);
        for (std::size_t i = 0; i < p; ++i) {
          for (float& x : parts.row(i))
            x = static_cast<float>((uniform(random) - 0.5) * std::exp(20 * uniform(random)));
        }
        Sums const got = sums_of(parts, grid_log2);
        EXPECT_EQ(got.bad_element, kNoRow);
        for (std::size_t j = 0; j < n; ++j) {
          std::int64_t want = 0;
          for (std::size_t i = 0; i < p; ++i) {
            want +=
                static_cast<std::int64_t>(std::floor(static_cast<long double>(parts.row(i)[j]) / std::exp2(grid_log2)));
          }
          ASSERT_EQ(got.sums[j], want) << n << ", " << p << ", " << j;
        }
        EXPECT_EQ(sums_of(parts, grid_log2, 2).sums == got.sums, true);
      }
    }
  }
}

// Large parts are summed as well, as long as their sum fits.
TEST(SumParts, ReportsFirstSumThatOverflowsOrIsNotFinite) {
  Random random(2);
  float const most = 0x1.fffffep62F, infinite = std::numeric_limits<float>::infinity();
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::size_t const n = 3000;
  for (auto const& [a, b, is_bad] :
       {std::tuple{most, -most, false}, std::tuple{most, most, true}, std::tuple{-0x1p62F, -0x1p62F, false},
        std::tuple{0x1p62F, 0x1p62F, true}, std::tuple{nan, 1.0F, true}, std::tuple{1.0F, infinite, true},
        std::tuple{-0x1p63F, 0.0F, false}, std::tuple{0x1p63F, -0x1p63F, true}}) {
    Matrix<float> const parts(Device::host(), 2, n);
    for (std::size_t i = 0; i < 2; ++i) {
      for (float& x : parts.row(i)) x = static_cast<float>(below(random, 100));
    }
    for (std::size_t j : {2222, 1500}) {
      parts.row(0)[j] = a;
      parts.row(1)[j] = b;
    }
    Sums const got = sums_of(parts, 0, 2);
    EXPECT_EQ(got.bad_element, is_bad ? 1500 : kNoRow) << a << " + " << b;
    for (std::size_t j = 0; j < n; ++j) {
      if (is_bad && (j == 1500 || j == 2222)) continue;
      Int128 const want = static_cast<Int128>(parts.row(0)[j]) + static_cast<Int128>(parts.row(1)[j]);
      ASSERT_EQ(got.sums[j], static_cast<std::int64_t>(want)) << j;
    }
  }
}

// Parameters with their optimizer state. `ends`: where the units of LAMB end.
struct Trained {
  Trained(DenseOptimizer const& o, std::vector<float> initial, int threads, std::vector<std::size_t> const& ends = {})
      : optimizer(o),
        values(std::move(initial)),
        first(has_first(o) ? values.size() : 0, 7.0F),
        second(has_second(o) ? values.size() : 0, 7.0F),
        stream(Device::host(), threads) {
    init_dense_state(stream, {optimizer, first, second});
    std::vector<std::size_t> begins{0};
    begins.insert(begins.end(), ends.begin(), ends.end());
    if (begins.back() < values.size()) begins.push_back(values.size());
    units = DenseUnits(stream, begins);
  }
  std::uint32_t step(std::vector<std::int64_t> const& sums, float rate, int t, float rate_before = 0) {
    std::uint32_t bad_element = kNoRow;
    update_dense(stream, {.sums = sums,
                          .grid_log2 = -30,
                          .scale = 1.0 / 64,
                          .optimizer = optimizer,
                          .rate = rate,
                          .rate_before = rate_before,
                          .step = t,
                          .values = values,
                          .first = first,
                          .second = second,
                          .bad_element = {&bad_element, 1},
                          .units = units.ref()});
    return bad_element;
  }
  DenseOptimizer optimizer;
  std::vector<float> values, first, second;
  Stream stream;
  DenseUnits units;
};

std::vector<float> random_values(Random& random, std::size_t n) {
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(uniform(random) * 2 - 1);
  return values;
}
// Sums of gradients of magnitude up to 2 per sample.
std::vector<std::int64_t> random_sums(Random& random, std::size_t n) {
  std::vector<std::int64_t> sums(n);
  for (auto& sum : sums) sum = static_cast<std::int64_t>((uniform(random) - 0.4) * 0x1p37);
  return sums;
}

class UpdateDenseWithOptimizer : public testing::TestWithParam<DenseOptimizer> {};
INSTANTIATE_TEST_SUITE_P(
    Optimizers, UpdateDenseWithOptimizer,
    testing::Values(
        DenseOptimizer{.kind = Kind::kSgd}, DenseOptimizer{.kind = Kind::kSgd, .momentum = 0.9F},
        DenseOptimizer{.kind = Kind::kSgd, .momentum = 0.5F, .weight_decay = 0.3F},
        DenseOptimizer{.kind = Kind::kAdagrad, .initial_accumulator = 0.1F},
        DenseOptimizer{.kind = Kind::kAdagrad, .epsilon = 1e-2F, .weight_decay = 0.3F},
        DenseOptimizer{.kind = Kind::kAdam},
        DenseOptimizer{.kind = Kind::kAdam, .beta1 = 0.5F, .beta2 = 0.9F, .epsilon = 1e-3F, .weight_decay = 0.3F},
        DenseOptimizer{.kind = Kind::kLamb},
        DenseOptimizer{.kind = Kind::kLamb, .beta1 = 0.5F, .beta2 = 0.9F, .epsilon = 1e-3F, .weight_decay = 0.3F},
        DenseOptimizer{.kind = Kind::kFtrl}, DenseOptimizer{.kind = Kind::kFtrl, .beta = 1e-4F},
        DenseOptimizer{.kind = Kind::kFtrl, .initial_accumulator = 0.2F, .l1 = 1.5F, .l2 = 2.0F, .beta = 0.5F}));

TEST_P(UpdateDenseWithOptimizer, StepsFollowTheFormulas) {
  // Where units end in the array of parameters. The kernel splits units into parts of 256.
  for (std::vector<std::size_t> const& ends : std::initializer_list<std::vector<std::size_t>>{
           {}, {16}, {48}, {16, 256}, {272}, {16, 32, 288}, {4752, 4768, 5024}, {16, 33040}}) {
    std::size_t const n = ends.empty() ? 0 : ends.back();
    Random random(n + 1);
    std::vector<float> const initial = random_values(random, n);
    Trained one(GetParam(), initial, 1, ends), two(GetParam(), initial, 2, ends);
    std::vector<DenseNumber> want;
    for (float x : initial) want.emplace_back(GetParam(), static_cast<double>(x));
    float before = 0;
    for (int t = 1; t <= 6; ++t) {
      auto const sums = random_sums(random, n);
      float const rate = 0.05F / static_cast<float>(t);
      EXPECT_EQ(one.step(sums, rate, t, before), kNoRow);
      EXPECT_EQ(two.step(sums, rate, t, before), kNoRow);
      std::vector<double> gradient;
      for (std::int64_t sum : sums) gradient.push_back(static_cast<double>(sum) * 0x1p-30 / 64);
      for (std::size_t unit = 0, begin = 0; unit < ends.size(); begin = ends[unit++]) {
        std::size_t const size = ends[unit] - begin;
        dense_step(GetParam(), {rate, before, t}, std::span(gradient).subspan(begin, size),
                   std::span(want).subspan(begin, size));
      }
      for (std::size_t j = 0; j < n; ++j) {
        ASSERT_NEAR(one.values[j], want[j].value, 2e-5) << "parameter " << j << ", step " << t;
        if (!one.second.empty()) {
          ASSERT_NEAR(one.second[j], want[j].second, 1e-5 * (1 + want[j].second));
        }
        if (!one.first.empty()) {
          ASSERT_NEAR(one.first[j], want[j].first, 1e-5 * (1 + std::abs(want[j].first)));
        }
      }
      before = rate;
    }
    EXPECT_EQ(one.values == two.values && one.first == two.first && one.second == two.second, true);
  }
}

TEST_P(UpdateDenseWithOptimizer, ReportsFirstParameterThatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> initial(1008, 0.5F);
    for (std::size_t j : {901, 700, 333}) initial[j] = bad;
    Trained trained(GetParam(), initial, 2, {320, 720});
    EXPECT_EQ(trained.step(std::vector<std::int64_t>(1008, 1 << 30), 0.1F, 1), 333U);
  }
}

// The padding of weights has no gradient and must stay zero.
TEST_P(UpdateDenseWithOptimizer, ZerosWithoutAGradientStayZero) {
  Trained trained(GetParam(), std::vector<float>(48, 0.0F), 1);
  for (int t = 1; t <= 3; ++t) EXPECT_EQ(trained.step(std::vector<std::int64_t>(48, 0), 0.1F, t, 0.1F), kNoRow);
  EXPECT_EQ(trained.values, std::vector<float>(48, 0.0F));
}

// An infinite second moment does not change the value, so only the state shows the error.
TEST(UpdateDense, LambReportsStateThatIsNotFinite) {
  Trained trained({.kind = Kind::kLamb}, std::vector<float>(640, 0.5F), 2);
  trained.second[600] = trained.second[577] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(trained.step(std::vector<std::int64_t>(640, 1 << 30), 0.1F, 1), 577U);
}

// All parameters are finite, but their norm overflows.
TEST(UpdateDense, LambReportsNormThatIsNotFinite) {
  Trained trained({.kind = Kind::kLamb}, std::vector<float>(640, 1e30F), 2, {320});
  EXPECT_EQ(trained.step(std::vector<std::int64_t>(640, 1 << 30), 0.1F, 1), 0U);
}

// The norm of a unit's step is the learning rate times the norm of the unit, for any norm of the gradient.
TEST(UpdateDense, LambStepIsProportionalToNormOfEachUnit) {
  Random random(3);
  std::vector<std::size_t> const ends{1600, 1616, 4000};
  std::vector<float> initial = random_values(random, 4000);
  for (std::size_t j = 1600; j < 4000; ++j) initial[j] *= j < 1616 ? 100.0F : 0.01F;
  Trained trained({.kind = Kind::kLamb}, initial, 2, ends);
  EXPECT_EQ(trained.step(random_sums(random, 4000), 0.125F, 1), kNoRow);
  for (std::size_t unit = 0, begin = 0; unit < ends.size(); begin = ends[unit++]) {
    double values = 0, moved = 0;
    for (std::size_t j = begin; j < ends[unit]; ++j) {
      double const value = initial[j], step = value - static_cast<double>(trained.values[j]);
      values += value * value;
      moved += step * step;
    }
    EXPECT_NEAR(std::sqrt(moved / values), 0.125, 1e-5) << "unit " << unit;
  }
}

TEST(UpdateDense, FtrlKeepsValuesWithoutGradientsAtAnyRate) {
  Random random(4);
  std::vector<float> const initial = random_values(random, 512);
  std::vector<std::int64_t> const none(512, 0);
  Trained trained({.kind = Kind::kFtrl, .initial_accumulator = 0.5F}, initial, 1);
  float before = 0;
  for (int t = 1; float rate : {0.01F, 0.05F, 0.002F, 0.0F}) {
    EXPECT_EQ(trained.step(none, rate, t++, before), kNoRow);
    for (std::size_t j = 0; j < 512; ++j) ASSERT_NEAR(trained.values[j], initial[j], 1e-6) << "rate " << rate;
    before = rate;
  }
}

TEST(UpdateDense, FtrlZeroesParametersWithSmallGradients) {
  Random random(5);
  Trained trained({.kind = Kind::kFtrl, .l1 = 50.0F}, std::vector<float>(512, 0.01F), 1);
  std::vector<std::int64_t> sums(512);
  for (std::size_t j = 0; j < 512; ++j) sums[j] = (j % 4 == 0 ? std::int64_t{1} << 40 : 1 << 20);  // 16, 1.5e-5
  for (int t = 1; t <= 8; ++t) EXPECT_EQ(trained.step(sums, 0.05F, t, 0.05F), kNoRow);
  for (std::size_t j = 0; j < 512; ++j) EXPECT_EQ(trained.values[j] == 0, j % 4 != 0) << j;
}

TEST(UpdateDense, LambRejectsMoreThan32BitParameterCount) {
  Stream stream(Device::host(), 1);
  expect_error(
      [&] {
        kernels::DenseUnits(stream, std::vector<std::size_t>{0, std::size_t{1} << 32});
      },
      {"4294967296 parameters", "use another optimizer"});
}

}  // namespace
}  // namespace gpups::test::dense_optimizer_test
