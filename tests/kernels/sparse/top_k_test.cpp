// SPDX-License-Identifier: Apache-2.0
// Vectors that are difficult for top-k: a sample of elements gives a wrong threshold, or no threshold separates k
// elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/sparse/top_k.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test::top_k_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Kept {
  std::vector<std::uint32_t> indices;
  std::vector<float> values, residual;
  float threshold;
};

// Runs the kernel on x. If `split` is set, x is split into values and a residual.
Kept top_k(Device device, int threads, std::vector<float> const& x, std::size_t k, float guess, bool split) {
  Stream stream(device, threads);
  std::vector<float> values = x, rest(split ? x.size() : 0, 0);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (i % 2 == 0) std::swap(values[i], rest[i]);
  }
  auto const values_there = to_device(stream, values), residual = to_device(stream, rest);
  std::size_t const room = std::min(k, x.size());
  Array<std::uint32_t> const indices(device, room);
  Array<float> const kept(device, room);
  auto const result = kernels::wait_top_k(stream, {values_there, residual, k, indices, kept, guess});
  return {to_host(stream, indices.view().slice(0, result.count)), to_host(stream, kept.view().slice(0, result.count)),
          to_host(stream, residual.view()), result.threshold};
}

// Orders floats by magnitude; NaN is the largest, whatever its bits, which a GPU changes.
std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(std::isnan(x) ? kNan : x) & 0x7FFFFFFF; }

// Compares with sorting. NaN is larger than infinity, and zeros are never selected.
void expect_largest(std::vector<float> const& x, std::size_t k, float guess = 0) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return magnitude(x[a]) > magnitude(x[b]); });
  order.resize(std::min(k, order.size()));
  float const least = order.empty() ? kInfinity : std::abs(x[order.back()]);
  std::sort(order.begin(), order.end());
  for (Device const device : devices()) {
    for (int const threads : {1, 3}) {
      for (bool const split : {false, true}) {
        Kept const got = top_k(device, threads, x, k, guess, split);
        EXPECT_EQ(differ("indices", got.indices, order), "") << "k = " << k << ", guess = " << guess;
        EXPECT_EQ(magnitude(got.threshold), magnitude(least)) << "k = " << k << ", guess = " << guess;
        std::vector<float> rest = split ? x : std::vector<float>{};
        for (std::size_t r = 0; r < std::min(order.size(), got.values.size()); ++r) {
          ASSERT_EQ(magnitude(got.values[r]), magnitude(x[order[r]]));
          if (split) rest[order[r]] = 0;
        }
        for (std::size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(magnitude(got.residual[i]), magnitude(rest[i])) << i;
      }
    }
  }
}

constexpr std::size_t kLong = 100'000;  // so many that the kernel does not list all elements as candidates

std::vector<float> normal(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> x(n);
  for (float& value : x) value = distribution(random);
  return x;
}

TEST(TopK, SelectsLargestForAnyK) {
  auto const x = normal(kLong, 1);
  for (std::size_t const k : {std::size_t{0}, std::size_t{1}, kLong / 100, kLong / 2, kLong - 1, kLong, kLong + 5}) {
    expect_largest(x, k);
  }
  expect_largest({}, 3);
  expect_largest({0, 0, 0}, 2);
}

TEST(TopK, ThresholdGuessDoesNotChangeTheResult) {
  auto const x = normal(kLong, 2);
  for (float const guess : {2.5758F, 0.001F, 100.0F, -1.0F, kInfinity, kNan, 1e-45F, 3e38F}) {
    expect_largest(x, kLong / 100, guess);
  }
}

TEST(TopK, SelectsAmongEqualElements) {
  expect_largest(std::vector<float>(kLong, -3), 1000);
  std::vector<float> few(kLong, 0);  // fewer nonzero elements than k
  for (std::size_t i = 5; i < few.size(); i += 1000) few[i] = i % 3 == 0 ? -1 : 1;
  expect_largest(few, 100);
  expect_largest(few, 1000);
  std::vector<float> two(kLong, 1);  // the threshold is in the larger class
  for (std::size_t i = 0; i < two.size(); i += 7) two[i] = -2;
  expect_largest(two, kLong / 3);
}

TEST(TopK, SelectsAmongSortedElements) {
  std::vector<float> x(kLong);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  expect_largest(x, kLong / 100);
  std::reverse(x.begin(), x.end());
  expect_largest(x, kLong / 100);
}

// All large elements are next to each other, so a sample of elements contains none of them.
TEST(TopK, FindsLargeElementsThatSamplesMiss) {
  auto x = normal(400'000, 3);
  for (std::size_t i = 123'456; i < 123'456 + 300; ++i) x[i] *= 1e6F;
  expect_largest(x, 200);
  expect_largest(x, 400);
}

TEST(TopK, NanIsLargerThanInfinity) {
  auto x = normal(kLong, 4);
  x[77] = kInfinity;
  x[78] = -kInfinity;
  x[79] = kNan;
  x[70'000] = -kNan;
  for (std::size_t const k : {1, 2, 3, 4, 5}) expect_largest(x, k);
  expect_largest(x, 3000);
  expect_largest(std::vector<float>(kLong, kNan), 10);
}

TEST(TopK, SelectsAmongDenormalFloats) {
  std::vector<float> x(kLong, 1e-45F);
  for (std::size_t i = 0; i < x.size(); i += 10) x[i] = 3e-45F;
  expect_largest(x, 1000);
  expect_largest(x, kLong / 2);
}

}  // namespace
}  // namespace gpups::test::top_k_test
