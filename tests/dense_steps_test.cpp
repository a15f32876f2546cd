// SPDX-License-Identifier: Apache-2.0
// Exact sums of dense gradients and the optimizers' steps, against loops in 128-bit integers and double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/contribution.hpp"
#include "kernels/dense/sum_parts.hpp"
#include "kernels/dense/update_dense.hpp"
#include "tests/inputs.hpp"

namespace gpups::test {
namespace {

using namespace kernels;
using Kind = DenseOptimizer::Kind;

struct Sums {
  std::vector<std::int64_t> sums;
  std::uint32_t fault;
};
Sums sums_of(Matrix<float> const& parts, int grid_log2, int threads = 1) {
  Sums s{std::vector<std::int64_t>(parts.columns(), -1), kNoRow};
  Stream stream(Device::host(), threads);
  sum_parts(stream, {parts, grid_log2, s.sums, {&s.fault, 1}});
  return s;
}

TEST(SumParts, IsTheSumOfRoundedParts) {
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
        EXPECT_EQ(got.fault, kNoRow);
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

// Large parts have a sum all the same, as long as it fits.
TEST(SumParts, FindsTheFirstParameterWithoutASum) {
  Random random(2);
  float const most = 0x1.fffffep62F, infinite = std::numeric_limits<float>::infinity();
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::size_t const n = 3000;
  for (auto const& [a, b, faulty] :
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
    EXPECT_EQ(got.fault, faulty ? 1500 : kNoRow) << a << " + " << b;
    for (std::size_t j = 0; j < n; ++j) {
      if (faulty && (j == 1500 || j == 2222)) continue;
      Int128 const want = static_cast<Int128>(parts.row(0)[j]) + static_cast<Int128>(parts.row(1)[j]);
      ASSERT_EQ(got.sums[j], static_cast<std::int64_t>(want)) << j;
    }
  }
}

// A parameter in double.
struct Parameter {
  double value, first, second;

  void step(DenseOptimizer const& o, double rate, double g, int t) {
    value -= rate * static_cast<double>(o.weight_decay) * value;
    switch (o.kind) {
      case Kind::kSgd:
        first = static_cast<double>(o.momentum) * first + g;
        value -= rate * first;
        break;
      case Kind::kAdagrad:
        second += g * g;
        value -= rate * g / (std::sqrt(second) + static_cast<double>(o.epsilon));
        break;
      case Kind::kAdam: {
        double const beta1 = o.beta1, beta2 = o.beta2;
        first = beta1 * first + (1 - beta1) * g;
        second = beta2 * second + (1 - beta2) * g * g;
        double const unbiased_first = first / (1 - std::pow(beta1, t)), unbiased = second / (1 - std::pow(beta2, t));
        value -= rate * unbiased_first / (std::sqrt(unbiased) + static_cast<double>(o.epsilon));
      }
    }
  }
};

// Parameters that are trained, with their state.
struct Trained {
  Trained(DenseOptimizer const& o, std::vector<float> initial, int threads)
      : optimizer(o),
        values(std::move(initial)),
        first(has_first(o) ? values.size() : 0, 7.0F),
        second(has_second(o) ? values.size() : 0, 7.0F),
        stream(Device::host(), threads) {
    init_dense_state(stream, {optimizer, first, second});
  }
  std::uint32_t step(std::vector<std::int64_t> const& sums, float rate, int t) {
    std::uint32_t fault = kNoRow;
    update_dense(stream, {.sums = sums,
                          .grid_log2 = -30,
                          .scale = 1.0 / 64,
                          .optimizer = optimizer,
                          .rate = rate,
                          .step = t,
                          .values = values,
                          .first = first,
                          .second = second,
                          .fault = {&fault, 1}});
    return fault;
  }
  DenseOptimizer optimizer;
  std::vector<float> values, first, second;
  Stream stream;
};

class UpdateDenseOf : public testing::TestWithParam<DenseOptimizer> {};
INSTANTIATE_TEST_SUITE_P(
    Optimizers, UpdateDenseOf,
    testing::Values(DenseOptimizer{.kind = Kind::kSgd}, DenseOptimizer{.kind = Kind::kSgd, .momentum = 0.9F},
                    DenseOptimizer{.kind = Kind::kSgd, .momentum = 0.5F, .weight_decay = 0.3F},
                    DenseOptimizer{.kind = Kind::kAdagrad, .initial_accumulator = 0.1F},
                    DenseOptimizer{.kind = Kind::kAdagrad, .epsilon = 1e-2F, .weight_decay = 0.3F},
                    DenseOptimizer{.kind = Kind::kAdam},
                    DenseOptimizer{
                        .kind = Kind::kAdam, .beta1 = 0.5F, .beta2 = 0.9F, .epsilon = 1e-3F, .weight_decay = 0.3F}));

TEST_P(UpdateDenseOf, StepsAreThoseOfTheFormulas) {
  for (std::size_t n : {0, 1, 3, 255, 256, 257, 5000}) {
    Random random(n + 1);
    std::vector<float> initial(n);
    for (float& x : initial) x = static_cast<float>(uniform(random) * 2 - 1);
    Trained one(GetParam(), initial, 1), two(GetParam(), initial, 2);
    std::vector<Parameter> want;
    double const accumulator = GetParam().kind == Kind::kAdagrad ? GetParam().initial_accumulator : 0;
    for (float x : initial) want.push_back({x, 0, accumulator});
    for (int t = 1; t <= 6; ++t) {
      std::vector<std::int64_t> sums(n);
      for (auto& sum : sums) sum = static_cast<std::int64_t>((uniform(random) - 0.4) * 0x1p37);  // up to 2 a sample
      float const rate = 0.05F / static_cast<float>(t);
      EXPECT_EQ(one.step(sums, rate, t), kNoRow);
      EXPECT_EQ(two.step(sums, rate, t), kNoRow);
      for (std::size_t j = 0; j < n; ++j) {
        want[j].step(GetParam(), rate, static_cast<double>(sums[j]) * 0x1p-30 / 64, t);
        ASSERT_NEAR(one.values[j], want[j].value, 2e-5) << "parameter " << j << ", step " << t;
        if (!one.second.empty()) {
          ASSERT_NEAR(one.second[j], want[j].second, 1e-5 * (1 + want[j].second));
        }
        if (!one.first.empty()) {
          ASSERT_NEAR(one.first[j], want[j].first, 1e-5 * (1 + std::abs(want[j].first)));
        }
      }
    }
    EXPECT_EQ(one.values == two.values && one.first == two.first && one.second == two.second, true);
  }
}

TEST_P(UpdateDenseOf, NamesTheFirstParameterThatIsNotFinite) {
  std::vector<float> initial(1000, 0.5F);
  for (std::size_t j : {901, 700, 333}) initial[j] = std::numeric_limits<float>::infinity();
  Trained trained(GetParam(), initial, 2);
  EXPECT_EQ(trained.step(std::vector<std::int64_t>(1000, 1 << 30), 0.1F, 1), 333U);
}

// Padding of weights has no gradient, and stays zero.
TEST_P(UpdateDenseOf, ZerosWithoutAGradientStayZero) {
  Trained trained(GetParam(), std::vector<float>(40, 0.0F), 1);
  for (int t = 1; t <= 3; ++t) EXPECT_EQ(trained.step(std::vector<std::int64_t>(40, 0), 0.1F, t), kNoRow);
  EXPECT_EQ(trained.values, std::vector<float>(40, 0.0F));
}

}  // namespace
}  // namespace gpups::test
