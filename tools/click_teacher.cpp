// SPDX-License-Identifier: Apache-2.0
#include "tools/click_teacher.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "trainer/base/random.hpp"

namespace gpups::tools {
namespace {

using trainer::below;
using trainer::mix;
using trainer::random_bits;

constexpr std::uint64_t kTeacherSeed = 20260;
constexpr std::array<std::uint32_t, kClickCategories> kSizes = {10,   12,   16,   20,   24,    30,    40,    50,    60,
                                                                80,   100,  120,  150,  200,   300,   400,   500,   800,
                                                                1000, 2000, 3000, 5000, 10000, 20000, 50000, 100000};
constexpr double kZipfExponent = 1.1;
// A value that occurs this often in a million samples has half of the effect that it would have if it were frequent.
constexpr double kHalfEffect = 10000;
constexpr std::uint32_t kInteractingSizeMax = 200;
// Standard deviations of the three parts of the logit (weights, interactions, numbers).
constexpr std::array<double, 3> kDeviations = {1.05, 0.5, 0.75};
constexpr double kClicks = 0.25;  // share of samples with a click
constexpr std::uint64_t kCalibrationSamples = 50000, kCalibrationSeed = 77;

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// A stream of random draws, a function of `seed` and `index`.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t index) : state_(random_bits(seed, index)) {}
  std::uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15U); }
  double unit() { return tools::unit(bits()); }
  double normal() {
    double const radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  std::uint64_t state_;
};

// Share of samples in which number `f` is missing.
double missing_share(std::size_t f) { return f % 3 == 0 ? 0.05 * static_cast<double>(f) : 0.02; }

// Draws number `f` of a sample, or kMissingNumber. The logarithm of a number has a normal distribution.
std::int64_t draw_number(std::size_t f, Draws& draws) {
  if (draws.unit() < missing_share(f)) return kMissingNumber;
  double const centre = 0.5 + 0.4 * static_cast<double>(f), spread = 0.7 + 0.1 * static_cast<double>(f % 5);
  auto const value = static_cast<std::int64_t>(std::exp(centre + spread * draws.normal()));
  return f == 1 ? value - 3 : value;  // number 1 has a few negative values, like Criteo's I2
}

// What number `f` adds to the logit: a smooth function of its logarithm, which rises, falls, or has one maximum.
double number_effect(std::size_t f, std::int64_t number) {
  if (number == kMissingNumber) return f % 2 == 0 ? 0.4 : -0.4;
  double const x =
      std::log1p(static_cast<double>(std::max<std::int64_t>(number, 0))) - 0.5 - 0.4 * static_cast<double>(f);
  if (f % 3 == 2) return std::exp(-x * x) - 0.6;
  return (f % 2 == 0 ? 0.6 : -0.6) * std::tanh(x);
}

}  // namespace

ClickTeacher::ClickTeacher() {
  for (std::size_t f = 0; f < kClickCategories; ++f) categories_.push_back(make_category(f));
  calibrate();
}

ClickSample ClickTeacher::sample(std::uint64_t seed, std::uint64_t index) const {
  Draws draws(seed, index);
  ClickSample s;
  for (std::size_t f = 0; f < kClickNumbers; ++f) s.numbers[f] = draw_number(f, draws);
  for (std::size_t f = 0; f < kClickCategories; ++f) {
    Category const& category = categories_[f];
    bool const missing = draws.unit() < category.missing;
    auto const value = static_cast<std::uint32_t>(below(category.draw.size(), draws.bits()));
    bool const keep = draws.unit() < category.draw[value].keep;
    s.values[f] = missing ? kMissingValue : keep ? value : category.draw[value].other;
  }
  auto const raw = parts(s);
  s.logit = intercept_ + std::inner_product(raw.begin(), raw.end(), scale_.begin(), 0.0);
  s.click = draws.unit() * (1 + std::exp(-s.logit)) < 1;
  return s;
}

std::array<double, 3> ClickTeacher::parts(ClickSample const& s) const {
  std::array<double, 3> sums{};
  std::array<double, kRank> total{};
  for (std::size_t f = 0; f < kClickCategories; ++f) {
    Category const& category = categories_[f];
    Value const& value = s.values[f] == kMissingValue ? category.values.back() : category.values[s.values[f]];
    sums[0] += value.weight;
    if (!category.interacts) continue;
    for (std::size_t r = 0; r < kRank;
         ++r) {  // the sum of all pairs' products: each vector times the sum of those before it
      sums[1] += total[r] * value.vector[r];
      total[r] += value.vector[r];
    }
  }
  for (std::size_t f = 0; f < kClickNumbers; ++f) sums[2] += number_effect(f, s.numbers[f]);
  return sums;
}

ClickTeacher::Category ClickTeacher::make_category(std::size_t field) const {
  std::uint32_t const size = kSizes[field];
  Category category;
  category.missing = field % 4 == 3 ? 0.02 * static_cast<double>(field) : 0;
  category.interacts = size <= kInteractingSizeMax && field % 2 == 0;

  std::vector<double> share(size);
  for (std::uint32_t v = 0; v < size; ++v) share[v] = std::pow(v + 1.0, -kZipfExponent);
  double const sum = std::accumulate(share.begin(), share.end(), 0.0);
  for (double& s : share) s *= (1 - category.missing) / sum;

  for (std::uint32_t v = 0; v <= size; ++v) {
    double const seen = 1e6 * (v == size ? category.missing : share[v]);
    double const effect = seen / (seen + kHalfEffect);
    Draws draws(kTeacherSeed + field, v);
    Value value{.weight = effect * draws.normal()};
    for (double& x : value.vector) x = effect * draws.normal();
    category.values.push_back(value);
  }

  // Walker's alias method: each value with less than the mean share is filled up from one with more.
  double const mean = (1 - category.missing) / size;
  std::vector<std::uint32_t> less, more;
  for (std::uint32_t v = 0; v < size; ++v) (share[v] < mean ? less : more).push_back(v);
  category.draw.resize(size, {.keep = 1, .other = 0});
  while (!less.empty() && !more.empty()) {
    std::uint32_t const small = less.back(), large = more.back();
    less.pop_back();
    category.draw[small] = {.keep = share[small] / mean, .other = large};
    share[large] -= mean - share[small];
    if (share[large] < mean) {
      more.pop_back();
      less.push_back(large);
    }
  }
  return category;
}

// Scales the parts to their standard deviations, then finds the intercept that gives the share of clicks.
void ClickTeacher::calibrate() {
  std::array<double, 3> mean{}, square{};
  std::vector<std::array<double, 3>> all;
  for (std::uint64_t i = 0; i < kCalibrationSamples; ++i) {
    all.push_back(parts(sample(kCalibrationSeed, i)));
    for (std::size_t p = 0; p < 3; ++p) {
      mean[p] += all.back()[p] / kCalibrationSamples;
      square[p] += all.back()[p] * all.back()[p] / kCalibrationSamples;
    }
  }
  for (std::size_t p = 0; p < 3; ++p) scale_[p] = kDeviations[p] / std::sqrt(square[p] - mean[p] * mean[p]);
  double low = -100, high = 100;
  for (int step = 0; step < 60; ++step) {
    intercept_ = (low + high) / 2;
    double clicks = 0;
    for (auto const& raw : all) {
      double const logit = intercept_ + std::inner_product(raw.begin(), raw.end(), scale_.begin(), 0.0);
      clicks += 1 / (1 + std::exp(-logit)) / kCalibrationSamples;
    }
    (clicks < kClicks ? low : high) = intercept_;
  }
}

}  // namespace gpups::tools
