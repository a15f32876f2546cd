// SPDX-License-Identifier: Apache-2.0
// Sparse streams: every form of values and every encoding of positions, compared with dense arrays; and their sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "tests/kernels/sparse/sparse_streams.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::sparse_stream_test {
namespace {

using kernels::kStreamBlock;
using kernels::PositionEncoding;
using kernels::StreamValues;
using kernels::StreamView;
using kernels::ValueForm;

constexpr ValueForm kForms[] = {{StreamValues::kFloat, kGrid},
                                {StreamValues::kHalf, kGrid},
                                {StreamValues::kBFloat16, kGrid},
                                {StreamValues::kInt8, kGrid},
                                {StreamValues::kUnits, kGrid}};
constexpr double kDensities[] = {0, 1e-5, .001, .01, .04, .12, .2, .6, .97, 1};

// Returns the largest error that a form may have in a block whose largest magnitude is `most`.
double error_max(ValueForm form, double most) {
  switch (form.values) {
    case StreamValues::kHalf:
      return 0x1p-11 * most;
    case StreamValues::kBFloat16:
      return 0x1p-8 * most;
    case StreamValues::kInt8:
      return most / 254 * (1 + 0x1p-13);
    default:
      return 0;
  }
}

template <class T>
void expect_decoded(std::vector<T> const& got, std::vector<T> const& want, ValueForm form) {
  ASSERT_EQ(got.size(), want.size());
  double const allowed = error_max(form, 1);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(number(got[i]) - number(want[i])), allowed) << "at " << i;
    ASSERT_TRUE(want[i] != 0 || got[i] == 0) << "at " << i;
  }
}

template <class T>
class SparseStream : public testing::Test {};
using Types = testing::Types<float, std::int64_t>;
TYPED_TEST_SUITE(SparseStream, Types);

TYPED_TEST(SparseStream, RoundTripKeepsElements) {
  Random random(1);
  Stream stream(Device::host(), 2);
  std::uint64_t const sizes[] = {0, 1, 63, 65, kStreamBlock - 1, kStreamBlock, kStreamBlock + 1, 3 * kStreamBlock + 7};
  for (std::uint64_t const size : sizes) {
    for (double const density : kDensities) {
      auto const e = elements<TypeParam>(random, 1000, size, density);
      for (ValueForm const form : kForms) {
        SCOPED_TRACE(testing::Message() << size << " at " << density << ", form " << static_cast<int>(form.values));
        auto const bytes = encoded(stream, e, form);
        auto const all = e.dense();
        auto const same = kernels::encode<TypeParam>(stream, {all, e.first, form});
        ASSERT_EQ(to_host(stream, bytes.view()), to_host(stream, same.view()))
            << "the encodings of a list and of an array differ";
        StreamView const streams[] = {view(bytes)};
        EXPECT_EQ(streams[0].header().first, e.first);
        EXPECT_GE(streams[0].header().count, e.indices.size());
        expect_decoded(dense<TypeParam>(stream, streams), all, form);
      }
    }
  }
}

TEST(SparseStreamOfFloats, ViewOfAListReadsInPlace) {
  Random random(3);
  Stream stream(Device::host(), 2);
  for (double const density : kDensities) {
    SCOPED_TRACE(density);
    auto const e = elements<float>(random, 5, 2 * kStreamBlock + 77, density);
    std::uint64_t const first = 17, size = e.size - 20;  // the list also has elements before and after this range
    auto const listed = kernels::view_in_place(stream, {e.indices, e.values, first, size});
    auto const other = elements<float>(random, first, size, .1);
    auto const sent = encoded(stream, other, {StreamValues::kHalf, kGrid});
    std::uint64_t count = 0;
    for (std::uint32_t const i : e.indices) count += i >= first && i - first < size ? 1 : 0;
    EXPECT_EQ(listed.view.header().count, count);
    auto const all = e.dense();
    auto const part = all.begin() + (first - e.first);
    StreamView const alone[] = {listed.view};
    EXPECT_EQ(dense<float>(stream, alone), std::vector(part, part + size));
    StreamView const both[] = {listed.view, view(sent)};
    auto want = dense<float>(stream, {both + 1, 1});
    for (std::size_t i = 0; i < size; ++i) want[i] = part[static_cast<std::ptrdiff_t>(i)] + want[i];
    EXPECT_EQ(dense<float>(stream, both), want);
  }
}

TEST(SparseStreamOfFloats, ViewOfAnArrayReadsInPlace) {
  Random random(4);
  Stream stream(Device::host(), 2);
  constexpr std::uint64_t kFirst = 17, kSize = 2 * kStreamBlock + 77;
  for (double const density : kDensities) {
    SCOPED_TRACE(density);
    auto values = elements<float>(random, kFirst, kSize, density).dense();
    auto const sent = encoded(stream, elements<float>(random, kFirst, kSize, density), {StreamValues::kFloat, 0});
    auto const own = kernels::encode<float>(stream, {values, kFirst, {}});
    for (float& x : values) x = x == 0 ? -0.F : x;
    StreamView const in_place = kernels::view_in_place(values, kFirst);
    EXPECT_EQ(in_place.header().first, kFirst);
    EXPECT_EQ(in_place.header().size, kSize);
    // Compares bits, because an encoded stream has no -0.
    auto const bits = [&](std::vector<StreamView> const& streams) {
      auto const sums = dense<float>(stream, streams);
      std::vector<std::uint32_t> all(sums.size());
      std::memcpy(all.data(), sums.data(), sums.size() * sizeof(float));
      return all;
    };
    EXPECT_EQ(bits({in_place}), bits({view(own)}));
    EXPECT_EQ(bits({in_place, view(sent)}), bits({view(own), view(sent)}));
    EXPECT_EQ(bits({view(sent), in_place}), bits({view(sent), view(own)}));
  }
}

TYPED_TEST(SparseStream, EncodesOnlyTheGivenRange) {
  Random random(2);
  Stream stream(Device::host(), 2);
  auto const e = elements<TypeParam>(random, 0, 3 * kStreamBlock + 100, .03);
  auto const all = e.dense();
  for (auto const& [first, size] :
       {std::pair<std::size_t, std::size_t>{0, 17}, {17, 70000}, {70017, 0}, {70017, 126691}}) {
    auto const bytes =
        kernels::encode<TypeParam>(stream, {e.indices, e.values, first, size, {StreamValues::kUnits, kGrid}});
    StreamView const streams[] = {view(bytes)};
    auto const part = all.begin() + static_cast<std::ptrdiff_t>(first);
    EXPECT_EQ(dense<TypeParam>(stream, streams), std::vector(part, part + static_cast<std::ptrdiff_t>(size)));
  }
}

TYPED_TEST(SparseStream, ResidualKeepsTheRoundingError) {
  Random random(3);
  Stream stream(Device::host(), 2);
  for (double const density : {.01, .3}) {
    auto const e = elements<TypeParam>(random, 5, 2 * kStreamBlock, density);
    for (ValueForm const form : kForms) {
      std::vector<TypeParam> residual(e.size, TypeParam{0});
      auto const bytes = encoded<TypeParam>(stream, e, form, residual);
      StreamView const streams[] = {view(bytes)};
      auto const got = dense<TypeParam>(stream, streams), want = e.dense();
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i] + residual[i], want[i]) << "at " << i;
      bool const is_lossless = form.values == StreamValues::kFloat || form.values == StreamValues::kUnits;
      bool const is_zero = residual == std::vector<TypeParam>(e.size, TypeParam{0});
      EXPECT_EQ(is_zero, is_lossless) << static_cast<int>(form.values);
    }
  }
}

PositionEncoding kind_at(double density, ValueForm form, std::size_t* position_bytes, std::size_t* count) {
  Random random(6);
  Stream stream(Device::host(), 2);
  auto const e = elements<float>(random, 0, 256 * kStreamBlock, density);
  auto const bytes = encoded(stream, e, form);
  StreamView const all = view(bytes);
  *count = e.indices.size();
  *position_bytes = bytes.size() - *count * (form.values == StreamValues::kHalf ? 2 : 4);
  return all.blocks()[0].word.kind;
}

TEST(SparseStreamBytes, PositionsUseTheShortestEncoding) {
  struct Case {
    double density, most;  // bytes for each element, all headers included
    PositionEncoding kind;
  };
  for (Case const c : {Case{.0005, 2.13, PositionEncoding::kOffsets},
                       {.01, 1.093, PositionEncoding::kGaps},
                       {.02, 1.01, PositionEncoding::kGaps},
                       {.04, 1.002, PositionEncoding::kGaps},
                       {.2, .626, PositionEncoding::kBitmap},
                       {.6, .2085, PositionEncoding::kBitmap},
                       {.98, .13, PositionEncoding::kDense},
                       {1, .0001, PositionEncoding::kDense}}) {
    std::size_t bytes, count;
    EXPECT_EQ(kind_at(c.density, {StreamValues::kHalf, kGrid}, &bytes, &count), c.kind) << c.density;
    EXPECT_LE(static_cast<double>(bytes), c.most * static_cast<double>(count)) << c.density;
  }
}

TEST(SparseStreamBytes, UnitsUseTheWidthTheirBlockNeeds) {
  Stream stream(Device::host(), 1);
  std::vector<std::uint32_t> const indices{5, 6, 70000, 140000, 200000};
  std::vector<std::int64_t> const values{-128, 127, 128, -40000, std::int64_t{1} << 40};
  auto const bytes =
      kernels::encode<std::int64_t>(stream, {indices, values, 0, 4 * kStreamBlock, {StreamValues::kUnits, kGrid}});
  StreamView const all = view(bytes);
  for (unsigned b = 0; b < 4; ++b) EXPECT_EQ(all.blocks()[b].word.width_log2, b);
  StreamView const streams[] = {all};
  auto const got = dense<std::int64_t>(stream, streams);
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(got[indices[i]], values[i]);
}

TEST(SparseStreamBytes, SupportLargestIndex) {
  Stream stream(Device::host(), 1);
  std::vector<std::uint32_t> const indices{0xFFFF0000, 0xFFFFFFFE};
  std::vector<float> const values{1, 2};
  auto const bytes =
      kernels::encode<float>(stream, {indices, values, 0xFFFE0001, 0x1FFFE, {StreamValues::kHalf, kGrid}});
  StreamView const streams[] = {view(bytes)};
  auto const got = kernels::sum<float>(stream, kernels::SumToEntries<float>{streams});
  EXPECT_EQ(to_host(stream, got.indices.view()), indices);
  EXPECT_EQ(to_host(stream, got.values.view()), values);
  // The largest possible vector; the words of its blocks alone are 256 KiB.
  auto const largest = kernels::encode<float>(stream, {indices, values, 0, 0xFFFFFFFF, {StreamValues::kHalf, kGrid}});
  StreamView const whole[] = {view(largest)};
  EXPECT_EQ(to_host(stream, kernels::sum<float>(stream, kernels::SumToEntries<float>{whole}).indices.view()), indices);
}

TEST(SparseStreamErrors, RejectsUnsortedIndices) {
  Stream stream(Device::host(), 2);
  std::vector<float> const values(4, 1);
  for (std::vector<std::uint32_t> const& wrong :
       {std::vector<std::uint32_t>{1, 5, 5, 7}, {1, 7, 5, 8}, {70000, 1, 2, 3}, {1, 2, 3, 0}, {1, 70000, 2, 80000}}) {
    expect_error(
        [&] {
          kernels::encode<float>(stream, {wrong, values, 0, 100000, {}});
        },
        {"are not ascending or not distinct"});
  }
}

// The wrong index is in a block whose positions are a bitmap, at several places of the list.
TEST(SparseStreamErrors, RejectsUnsortedIndicesInDenseBlocks) {
  Stream stream(Device::host(), 2);
  std::vector<std::uint32_t> good;
  for (std::uint32_t i = 0; i < 2 * kStreamBlock; i += 1 + i % 3) good.push_back(i);
  std::vector<float> const values(good.size(), 1);
  for (std::size_t const at : {std::size_t{1}, std::size_t{511}, std::size_t{512}, good.size() / 2, good.size() - 1}) {
    for (std::uint32_t const wrong : {good[at - 1], 0U}) {
      auto indices = good;
      indices[at] = wrong;
      expect_error(
          [&] {
            kernels::view_in_place(stream, {indices, values, 0, 2 * kStreamBlock});
          },
          {"are not ascending or not distinct"});
    }
  }
}

}  // namespace
}  // namespace gpups::test::sparse_stream_test
