// SPDX-License-Identifier: Apache-2.0
// Sums of sparse streams, compared with maps of doubles, and the memory that the sums keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/kernels/sparse/sparse_streams.hpp"

namespace gpups::test::sparse_sum_test {
namespace {

using kernels::kStreamBlock;
using kernels::StreamValues;
using kernels::StreamView;

template <class T>
class SparseSum : public testing::Test {};
using Types = testing::Types<float, std::int64_t>;
TYPED_TEST_SUITE(SparseSum, Types);

TYPED_TEST(SparseSum, MatchesSumInAMap) {
  Random random(4);
  for (double const density : {.0005, .02, .1, .5, .99}) {
    for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
      Stream stream(Device::host(), ranks % 2 == 0 ? 1 : 2);
      std::vector<Array<std::uint8_t>> bytes;
      std::vector<StreamView> streams;
      std::map<std::uint32_t, double> want;
      for (std::size_t r = 0; r < ranks; ++r) {
        auto const e = elements<TypeParam>(random, 77, kStreamBlock + 999, density * (r == 2 ? 20 : 1));
        bytes.push_back(encoded(stream, e, {StreamValues::kUnits, kGrid}));
        for (std::size_t i = 0; i < e.indices.size(); ++i) want[e.indices[i]] += number(e.values[i]);
        if (r == 0 && ranks > 1) {  // the next stream cancels every second element
          auto other = e;
          for (std::size_t i = 0; i < e.indices.size(); ++i) {
            other.values[i] = i % 2 == 0 ? -e.values[i] : e.values[i];
            want[e.indices[i]] += number(other.values[i]);
          }
          bytes.push_back(encoded(stream, other, {StreamValues::kUnits, kGrid}));
        }
      }
      for (auto const& b : bytes) streams.push_back(view(b));
      std::erase_if(want, [](auto const& entry) { return entry.second == 0; });

      auto const entries = kernels::sum<TypeParam>(stream, kernels::SumToEntries<TypeParam>{streams});
      ASSERT_FALSE(entries.bad);
      ASSERT_EQ(entries.indices.size(), want.size());
      std::size_t i = 0;
      for (auto const& [index, value] : want) {
        ASSERT_EQ(entries.indices[i], index);
        ASSERT_EQ(number(entries.values[i++]), value);
      }
      auto const all = dense<TypeParam>(stream, streams);
      for (std::size_t k = 0; k < all.size(); ++k) {
        auto const at = want.find(static_cast<std::uint32_t>(77 + k));
        ASSERT_EQ(number(all[k]), at == want.end() ? 0 : at->second);
      }
      auto const summed =
          kernels::sum<TypeParam>(stream, kernels::SumToStream<TypeParam>{streams, {StreamValues::kUnits, kGrid}});
      ASSERT_FALSE(summed.bad);
      StreamView const again[] = {view(summed.bytes)};
      ASSERT_EQ(dense<TypeParam>(stream, again), all);
      Elements<TypeParam> const list{to_host(stream, entries.indices.view()), to_host(stream, entries.values.view()),
                                     77, all.size()};
      ASSERT_EQ(to_host(stream, summed.bytes.view()),
                to_host(stream, encoded(stream, list, {StreamValues::kUnits, kGrid}).view()));
    }
  }
}

TYPED_TEST(SparseSum, AddsToExistingValues) {
  Random random(5);
  Stream stream(Device::host(), 1);
  auto const e = elements<TypeParam>(random, 0, 70000, .05);
  auto const bytes = encoded(stream, e, {StreamValues::kFloat, kGrid});
  StreamView const streams[] = {view(bytes), view(bytes)};
  std::vector<TypeParam> into(e.size, TypeParam{1024});
  EXPECT_FALSE(kernels::sum<TypeParam>(stream, {streams, into, true}));
  auto const all = e.dense();
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(into[i], 1024 + all[i] + all[i]) << "at " << i;
  }
}

TEST(SparseSumOfFloats, SumOfNegativeZerosIsPositiveZero) {
  Stream stream(Device::host(), 1);
  for (std::uint32_t const step : {1, 2, 5, 20, 600}) {
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < kStreamBlock; i += step) indices.push_back(i);
    std::vector<float> const values(indices.size(), -0.F);
    auto const listed = kernels::view_in_place(stream, {indices, values, 0, kStreamBlock});
    auto const bytes = kernels::encode<float>(stream, {indices, values, 0, kStreamBlock, {}});
    StreamView const both[] = {view(bytes), listed.view};
    for (std::size_t const terms : {1, 2}) {
      auto const sums = dense<float>(stream, {both, terms});
      EXPECT_TRUE(std::none_of(sums.begin(), sums.end(), [](float x) { return std::signbit(x); })) << step;
    }
  }
}

// The sum may have fewer elements than its terms together. It keeps at most twice the memory that its elements need,
// and frees all of it.
TEST(SparseSumMemory, IsBoundedByTheSizeOfTheSum) {
  Random random(8);
  Stream stream(Device::host(), 1);
  std::size_t const before = memory::usage(Device::host()).bytes;
  for (double const density : {.02, .6}) {
    auto const e = elements<float>(random, 0, 2 * kStreamBlock, density);
    auto const bytes = encoded(stream, e, {StreamValues::kFloat, kGrid});
    std::size_t const with_bytes = memory::usage(Device::host()).bytes;
    for (std::size_t const terms : {1, 2, 8}) {  // the sum has 1 / terms of the elements of all terms
      std::vector<StreamView> const streams(terms, view(bytes));
      auto const sums = kernels::sum<float>(stream, kernels::SumToEntries<float>{streams});
      EXPECT_EQ(to_host(stream, sums.indices.view()), e.indices);
      std::size_t const taken = memory::usage(Device::host()).bytes - with_bytes;
      EXPECT_LE(taken, 2 * (sums.indices.bytes() + sums.values.bytes())) << terms << " terms";
    }
  }
  EXPECT_EQ(memory::usage(Device::host()).bytes, before);
}

}  // namespace
}  // namespace gpups::test::sparse_sum_test
