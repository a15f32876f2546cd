// SPDX-License-Identifier: Apache-2.0
// Invalid sparse streams are rejected with a reason, or read without accesses outside of their bytes and their range.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test::hostile_stream_test {
namespace {

using kernels::kStreamBlock;
using kernels::StreamValues;
using kernels::StreamView;

std::string error_of(std::vector<std::uint8_t> const& bytes) {
  return std::string(StreamView(View<std::uint8_t const>(bytes)).error());
}

// A stream of two blocks, one of which is empty.
std::vector<std::uint8_t> small_stream(double density, StreamValues values) {
  Random random(7);
  Stream stream(Device::host(), 1);
  std::vector<std::uint32_t> indices;
  std::vector<float> floats;
  for (std::uint32_t i = 10; i < 910; ++i) {
    if (uniform(random) >= density) continue;
    indices.push_back(i);
    floats.push_back(static_cast<float>(uniform(random)) - .5F);
  }
  return to_host(stream,
                 kernels::encode<float>(stream, {indices, floats, 10, kStreamBlock + 50, {values, -30}}).view());
}

TEST(HostileStream, InvalidHeaderIsRejectedWithReason) {
  auto const good = small_stream(.02, StreamValues::kHalf);
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of({}), "it is shorter than a header");
  struct Case {
    std::size_t at;
    std::uint8_t byte;
    char const* error;
  };
  for (Case const c : {Case{0, 2, "its version is unknown"},
                       {1, 5, "its values have an unknown format"},
                       {3, 0x7F, "its grid is out of range"},
                       {4, 1, "its reserved bytes are not 0"},
                       {15, 1, "its range is too long"},
                       {20, 1, "its range is too long"},
                       {18, 7, "its length differs from that in its header"},
                       {24, 1, "the number of elements of its blocks differs from that in its header"},
                       {33, 1, "its length differs from that in its header"},
                       {47, 0xFF, "its length differs from that in its header"},
                       {51, 0x03, "a block has a wrong number of skips"},
                       {51, 0x80, "the word of a block has unknown bits"},
                       {51, 0x10, "a block has a width of units, but the stream has no units"},
                       {51, 0x0C, "a dense block is not full"},
                       {51, 0x04, "its blocks need more bytes than it has"},
                       {52, 99, "a block has more elements than positions"},
                       {55, 8, "the word of an empty block is not 0"}}) {
    auto bytes = good;
    bytes[c.at] = c.byte;
    EXPECT_EQ(error_of(bytes), c.error) << "byte " << c.at;
  }
  auto longer = good;
  longer.push_back(0);
  EXPECT_EQ(error_of(longer), "its length differs from that in its header");
}

// Flips each bit. No read is outside of the bytes, and all indices are within the stream's range.
TEST(HostileStream, BitFlipsNeverCauseReadsOutOfRange) {
  Stream stream(Device::host(), 1);
  std::size_t rejected = 0, bad = 0, read = 0;
  for (double const density : {.004, .03, .4, 1.}) {
    for (auto const values : {StreamValues::kHalf, StreamValues::kInt8, StreamValues::kUnits}) {
      auto const good = small_stream(density, values);
      for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        std::vector<std::uint8_t> bytes(good);
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        StreamView const streams[] = {StreamView(View<std::uint8_t const>(bytes))};
        if (!streams[0].error().empty()) {
          ++rejected;
          continue;
        }
        auto const list = kernels::sum<float>(stream, kernels::SumToEntries<float>{streams});
        ++(list.bad ? bad : read);
        for (std::size_t i = 1; i < list.indices.size(); ++i) ASSERT_LT(list.indices[i - 1], list.indices[i]);
        if (list.indices.size() > 0) {
          ASSERT_LT(list.indices[list.indices.size() - 1] - streams[0].header().first, streams[0].header().size);
        }
      }
    }
  }
  EXPECT_GT(rejected, 1000U);
  EXPECT_GT(bad, 10U);
  EXPECT_GT(read, 1000U);
}

TEST(HostileStream, SumsReportTheIndexOfABadStream) {
  Stream stream(Device::host(), 1);
  auto const good = small_stream(.02, StreamValues::kHalf);
  auto wrong = good;
  wrong.back() = 255;  // the last gap leaves the range
  StreamView const streams[] = {StreamView(View<std::uint8_t const>(good)),
                                StreamView(View<std::uint8_t const>(wrong))};
  std::vector<float> all(kStreamBlock + 50);
  EXPECT_EQ(kernels::sum<float>(stream, kernels::SumToDense<float>{streams, all}), 1U);
  EXPECT_EQ(kernels::sum<float>(stream, kernels::SumToStream<float>{streams, {}}).bad, 1U);
  EXPECT_EQ(kernels::sum<float>(stream, kernels::SumToEntries<float>{streams}).bad, 1U);
}

}  // namespace
}  // namespace gpups::test::hostile_stream_test
