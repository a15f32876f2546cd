// SPDX-License-Identifier: Apache-2.0
// In which formats numbers may go where the caller has asked for one, and that the fastest of them is taken.
#include "comm/collective/ways.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "comm/collective/reckoning.hpp"
#include "gpups/gpups.hpp"
#include "kernels/wire/buckets.hpp"
#include "kernels/wire/quantize_buckets.hpp"
#include "tests/sum_shapes.hpp"

namespace gpups::comm {
namespace {

TEST(Ways, AreToldInFewBitsAndEachIsThereOnce) {
  std::set<std::string> names;
  for (Way const& way : ways()) {
    EXPECT_TRUE(way.algorithm->has(way.format));
    names.insert(name_of(way));
  }
  EXPECT_EQ(names.size(), ways().size());
  EXPECT_LE(ways().size(), kWaysMax);
  for (char const* name : {"direct", "sparse_gather", "sparse_gather as half", "sparse_dense as int2"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// The largest error of numbers that go as a format, to the nearest, in one bucket.
double error_of(NumberFormat format, std::vector<float> const& bucket) {
  Stream stream(Device::host());
  auto const wire_format = static_cast<kernels::Format>(format);
  Array<std::uint8_t> const wire(Device::host(), kernels::bucket_bytes(wire_format, bucket.size(), bucket.size()));
  std::vector<float> sent(bucket.size());
  kernels::quantize_buckets(stream, {.values = bucket, .format = wire_format, .bucket = bucket.size(), .wire = wire});
  kernels::unpack_buckets(stream, {wire, wire_format, bucket.size(), sent});
  double worst = 0;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(sent[i]) - static_cast<double>(bucket[i])));
  }
  return worst;
}

// What a format may make of a bucket whose largest number is 1 (kernels/wire/format.hpp).
constexpr double kStated[] = {0, 0x1p-11, 0x1p-8, 0x1p-4, 0x1p-3, 1. / 254, 1. / 14, 1. / 2};

TEST(Ways, WhatIsAsExactErrsNowhereByMoreThanTheOtherMay) {
  int pairs = 0;
  for (NumberFormat const format : kNumberFormats) {
    for (NumberFormat const other : kNumberFormats) {
      double most = 0;  // of what the other may err by
      for (float const largest : {1e-25F, 1.2345e-7F, 1.0039F, 1.9999F, 3e4F, 1e30F}) {
        for (float const ratio : {.991F, .7F, .01F}) {
          std::vector<float> bucket;
          for (float x = largest; bucket.size() < 16; x *= ratio) bucket.push_back(x);
          most = std::max(most, error_of(format, bucket) / (kStated[static_cast<int>(other)] * largest + 1e-40));
        }
      }
      if (format == other) continue;
      bool const claimed = is_as_exact(format, other);
      pairs += claimed ? 1 : 0;
      if (claimed) EXPECT_LE(most, 1.001) << name_of(format) << " for " << name_of(other);
      if (format == NumberFormat::kHalf) EXPECT_GT(most, 1) << name_of(other);
    }
  }
  EXPECT_EQ(pairs, 12);  // floats for 7 others, bfloats for the 5 with scales
}

SumShape as(NumberFormat format, SumShape shape) {
  shape.format = format;
  return shape;
}

TEST(Ways, ServeWhatTheyAreAsExactAs) {
  for (NumberFormat const asked : kNumberFormats) {
    std::set<NumberFormat> formats;
    for (Way const& way : ways()) {
      SumShape const shape = as(asked, dense(1000));
      EXPECT_EQ(way.serves(shape), !way.algorithm->about.by_nccl && is_as_exact(way.format, asked)) << name_of(way);
      if (way.serves(shape)) formats.insert(way.format);
    }
    EXPECT_TRUE(formats.contains(asked)) << name_of(asked);
    EXPECT_TRUE(formats.contains(NumberFormat::kFloat)) << name_of(asked);
  }
}

// Where bytes are what takes long numbers go in few of them, and where coding does as they are. Formats of which there
// are no streams go half of the way as floats, so that bfloats on all of it are fewer bytes.
TEST(Ways, NumbersGoInTheFormatThatIsFastest) {
  for (NumberFormat const asked : kNumberFormats) {
    for (SumShape const& sum : {dense(1 << 20), sparse(1 << 20, 10000)}) {
      SumShape const shape = as(asked, sum);
      auto const codes = asked <= NumberFormat::kBFloat ? &LinkModel::half_s : &LinkModel::code_s;
      Way const& of_few_bytes = Reckoning(only(&LinkModel::byte_s)).choose(shape);
      Way const& of_little_coding = Reckoning(only(codes)).choose(shape);
      bool const has_streams = asked <= NumberFormat::kBFloat || asked == NumberFormat::kInt8;
      EXPECT_EQ(of_few_bytes.format, has_streams ? asked : NumberFormat::kBFloat) << name_of(asked);
      if (asked != NumberFormat::kFloat) EXPECT_NE(of_little_coding.format, asked) << name_of(asked);
    }
  }
}

// What was slower than the model says is not taken, though it sends least.
TEST(Ways, WhatSumsTakeDecidesBetweenFormats) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = as(NumberFormat::kHalf, sparse(1 << 20, 10000));
  EXPECT_EQ(reckoning.choose(shape).format, NumberFormat::kHalf);
  std::uint64_t number = 0;
  for (int i = 0; i < 200; ++i) {
    Way const& way = *reckoning.next(shape).way;
    double const seconds = way.format == NumberFormat::kHalf ? .002 : .001;
    reckoning.learn({.number = ++number, .shape = shape, .way = &way, .seconds = seconds});
  }
  EXPECT_EQ(reckoning.choose(shape).format, NumberFormat::kFloat);
  auto const lines = reckoning.explain();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(", as half or what errs less, usually by sparse_"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("sparse_gather as half "), std::string::npos) << lines[0];
}

TEST(Ways, SumsOfAGroupErrByNoMoreThanTheFormatAskedFor) {
  constexpr double kSteps[] = {1e-6, 3e-3, 3e-2, .8, 1.6, .1, 1.8, 12};  // of sums up to 6, rounded twice
  for (NumberFormat const asked : kNumberFormats) {
    run_ranks(Group::threads(3), [&](Group const& group) {
      Store store(group, {.threads = 1});
      auto stream = store.make_stream();
      for (std::size_t const size : {std::size_t{50}, std::size_t{70001}}) {
        std::vector<float> terms(size);
        for (std::size_t i = 0; i < size; ++i) terms[i] = 1 + static_cast<float>(i % 777) / 777;
        for (int sum = 0; sum < 3; ++sum) {
          std::vector<float> values = terms;
          group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(values), {.format = asked}));
          double const step = kSteps[size == 50 ? 0 : static_cast<int>(asked)];  // short ones go as they are
          for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(values[i], 3 * terms[i], step) << name_of(asked) << i;
        }
      }
      if (group.rank() == Rank{0}) {
        auto const lines = store.explain_allreduces();
        EXPECT_EQ(lines.size(), 2U);  // of the links, and of the sums that were chosen for
        EXPECT_NE(lines.back().find(std::string(", as ") + name_of(asked)), std::string::npos) << lines.back();
      }
      store.wait_barrier();
    });
  }
}

}  // namespace
}  // namespace gpups::comm
