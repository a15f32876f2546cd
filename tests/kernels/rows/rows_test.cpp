// SPDX-License-Identifier: Apache-2.0
// Properties of row kernels beyond the kernel cases: digests depend on every bit, failing updates report their row, and
// initial values have the expected moments.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/base/hash.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/hash_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/update/update_rows.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::kernels::rows_test {
namespace {

using test::rows;
using Ids = std::vector<std::uint32_t>;

std::vector<Device> devices() {
  std::vector<Device> all{Device::host()};
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  return all;
}

struct Table {
  std::vector<std::uint64_t> keys{3, 4};
  std::array<float, 8> values{1, 2, 3, 0, 1, 2, 3, 0};  // two rows of three
  std::vector<float> state{5, 5};
  Ids lifecycle{1, 8, 2, 9};
  std::uint64_t seed = 1;

  std::vector<std::uint64_t> digest(Device device) const {
    Stream stream(device, 1);
    auto const digest = to_device(stream, std::vector<std::uint64_t>{0, 0});
    auto const k = rows(stream, keys, 2, 1);
    auto const v = rows(stream, std::vector<float>(values.begin(), values.end()), 2, 4);
    auto const s = rows(stream, state, 2, 1);
    auto const l = rows(stream, lifecycle, 2, kLifecycleWords);
    hash_rows(stream, {2, k.const_ref(), v.const_ref(), s.const_ref(), 3, 1, l.const_ref(), seed, digest});
    return to_host(stream, digest.view());
  }
};

TEST(HashRows, DependsOnEveryFieldOfARow) {
  for (Device const device : devices()) {
    std::set<std::uint64_t> digests;
    auto const add = [&](auto change) {
      Table table;
      change(table);
      digests.insert(table.digest(device)[0]);
    };
    add([](Table&) {});
    add([](Table& t) { t.keys[0] = 5; });
    add([](Table& t) { t.values[2] = std::nextafter(3.0F, 4.0F); });
    add([](Table& t) { t.values[0] = -1; });
    add([](Table& t) { std::swap(t.values[0], t.values[1]); });
    add([](Table& t) { t.state[1] = 6; });
    add([](Table& t) { t.lifecycle[0] = 3; });
    add([](Table& t) { t.lifecycle[0] = 0; });
    add([](Table& t) { t.lifecycle[1] = 7; });
    add([](Table& t) { t.seed = 2; });
    EXPECT_EQ(digests.size(), 10U);
    Table padded, swapped, waiting, reserved;
    waiting.lifecycle[0] = kWaiting + 3;
    reserved.lifecycle[0] = 0;
    EXPECT_EQ(waiting.digest(device), reserved.digest(device)) << "waiting and free rows do not count";
    padded.values[3] = 9;
    EXPECT_EQ(padded.digest(device), Table{}.digest(device)) << "padding does not count";
    swapped.lifecycle = {2, 9, 1, 8};
    std::swap(swapped.keys[0], swapped.keys[1]);
    EXPECT_EQ(swapped.digest(device), Table{}.digest(device)) << "the order of rows does not count";
  }
}

std::uint32_t bad_row_of_update(Device device, Optimizer optimizer, std::vector<float> const& values, double scale) {
  Stream stream(device, 2);
  Ids const ids{2, 0, 1};
  auto const v = rows(stream, values, 3, 4);
  auto const s = rows(stream, std::vector<float>(12, 0), 3, state_columns(optimizer, 1));
  auto const l = rows(stream, Ids{1, 0, 1, 0, 1, 0}, 3, kLifecycleWords);
  auto const sums = test::matrix<std::int64_t>(stream, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, 3, 1);
  auto const ids_there = to_device(stream, ids), bad_row = to_device(stream, Ids{kNoRow});
  update_rows(stream, {ids_there, sums, v.ref(), s.ref(), l.ref(), 1, 0, scale, optimizer, 0.1F, 1, 1, bad_row});
  return to_host(stream, bad_row.view())[0];
}

TEST(UpdateRows, ReportsFirstRowThatIsNotFinite) {
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (Device const device : devices()) {
    for (auto kind : {Optimizer::Kind::kSgd, Optimizer::Kind::kAdagrad, Optimizer::Kind::kRowwiseAdagrad}) {
      Optimizer optimizer;
      optimizer.kind = kind;
      EXPECT_EQ(bad_row_of_update(device, optimizer, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, 1), kNoRow);
      EXPECT_EQ(bad_row_of_update(device, optimizer, {1, 0, 0, 0, nan, 0, 0, 0, inf, 0, 0, 0}, 1), 1U);
      EXPECT_EQ(bad_row_of_update(device, optimizer, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, 1e300), 0U);
    }
  }
}

TEST(InitRows, DrawsHaveExpectedMeanAndVariance) {
  Stream stream(Device::host(), 2);
  std::size_t const n = 2000, dim = 64;
  auto const keys = test::distinct_keys(n);
  Matrix<float> const out(Device::host(), n, dim);
  for (auto kind : {Initializer::Kind::kUniform, Initializer::Kind::kNormal}) {
    init_matrix(stream, {View<Key const>(keys), {}, out, {kind, 2.0F}, 5});
    double sum = 0, squares = 0, neighbours = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < dim; ++j) {
        sum += out.row(i)[j];
        squares += out.row(i)[j] * out.row(i)[j];
        neighbours += out.row(i)[j] * out.row(i)[(j + 1) % dim];
      }
    }
    double const draws = n * dim, variance = kind == Initializer::Kind::kNormal ? 4.0 : 4.0 / 3;
    EXPECT_NEAR(sum / draws, 0, 0.02);
    EXPECT_NEAR(squares / draws, variance, 0.05);
    EXPECT_NEAR(neighbours / draws, 0, 0.03);
  }
}

// Entries without a row number write nothing, in every data type.
template <class T>
void expect_skipped(Device device) {
  Stream stream(device, 1);
  constexpr std::size_t kDim = 3;
  std::size_t const stride = row_stride(kDim, kNumberType<T>);
  T const before{}, after = round_to<T>(2.5F);
  auto const to = rows(stream, std::vector<T>(2 * stride, before), 2, stride);
  auto const from = to_device(stream, std::vector<float>(2 * gpups::row_stride(kDim), 2.5F));
  auto const ids = to_device(stream, Ids{kNoRow, 1});
  scatter(stream, {{from.data(), 2, kDim, gpups::row_stride(kDim), device}, ids, to.ref(), kDim});
  auto const written = test::to_host(stream, to.ref(), 2);
  for (std::size_t j = 0; j < kDim; ++j) {
    EXPECT_EQ(to_float(written[j]), to_float(before));
    EXPECT_EQ(to_float(written[stride + j]), to_float(after));
  }
}

TEST(Scatter, SkipsEntriesWithoutRow) {
  for (Device const device : devices()) {
    expect_skipped<float>(device);
    expect_skipped<Half>(device);
    expect_skipped<BFloat16>(device);
  }
}

}  // namespace
}  // namespace gpups::kernels::rows_test
