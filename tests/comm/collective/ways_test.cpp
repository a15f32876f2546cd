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
#include "comm/collective/sparse_streamed.hpp"
#include "gpups/gpups.hpp"
#include "kernels/wire/buckets.hpp"
#include "kernels/wire/quantize_buckets.hpp"
#include "tests/comm/collective/sum_shapes.hpp"
#include "tests/support/wire_oracle.hpp"

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
  auto const code = wire_format(format);
  Array<std::uint8_t> const wire(Device::host(), kernels::bucket_bytes(code, bucket.size(), bucket.size()));
  std::vector<float> sent(bucket.size());
  kernels::quantize_buckets(stream, {.values = bucket, .format = code, .bucket = bucket.size(), .wire = wire});
  kernels::unpack_buckets(stream, {wire, code, bucket.size(), sent});
  double worst = 0;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(sent[i]) - static_cast<double>(bucket[i])));
  }
  return worst;
}

TEST(Ways, WhatIsAsExactErrsNowhereByMoreThanTheOtherMay) {
  int pairs = 0;
  for (NumberFormat const format : kNumberFormats) {
    for (NumberFormat const other : kNumberFormats) {
      double most = 0;  // of what the other may err by in the largest number of a bucket
      for (float const largest : {1e-25F, 1.2345e-7F, 1.0039F, 1.9999F, 3e4F, 6.7e4F, 1e30F}) {
        for (float const ratio : {.991F, .7F, .01F}) {
          std::vector<float> bucket;
          for (float x = largest; bucket.size() < 16; x *= ratio) bucket.push_back(x);
          double const may = test::error_max(wire_format(other), static_cast<double>(largest), largest);
          most = std::max(most, error_of(format, bucket) / (may + 1e-40));
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

// A rounded term is not a rounded sum: none of an algorithm that errs elsewhere than one which has the format asked
// for.
TEST(Ways, ServeWhatTheirAlgorithmHas) {
  for (NumberFormat const asked : kNumberFormats) {
    SumShape const shape = as(asked, dense(1000));
    std::set<std::string> names;
    for (Way const& way : ways()) {
      if (way.serves(shape)) names.insert(name_of(way));
    }
    std::set<std::string> expected{"direct",          "doubling",      "sparse_gather",
                                   "sparse_doubling", "sparse_owners", "sparse_dense"};
    for (NumberFormat const format : {asked, NumberFormat::kBFloat}) {
      if (asked == NumberFormat::kFloat || (asked == NumberFormat::kHalf && format != asked)) continue;
      std::string const as = std::string(" as ") + name_of(format);
      expected.insert("sparse_dense" + as);
      if (!have_streams(asked)) continue;
      for (char const* name : {"sparse_gather", "sparse_doubling", "sparse_owners"}) expected.insert(name + as);
    }
    EXPECT_EQ(names, expected) << name_of(asked);
  }
}

// Where bytes are what takes long numbers go in few of them, and where coding does as they are.
TEST(Ways, NumbersGoInTheFormatThatIsFastest) {
  for (NumberFormat const asked : kNumberFormats) {
    for (SumShape const& sum : {dense(1 << 20), sparse(1 << 20, 10000)}) {
      SumShape const shape = as(asked, sum);
      auto const codes = asked <= NumberFormat::kBFloat ? &LinkModel::half_s : &LinkModel::code_s;
      Way const& of_few_bytes = Reckoning(only(&LinkModel::byte_s)).choose(shape);
      Way const& of_little_coding = Reckoning(only(codes)).choose(shape);
      // Of a few elements streams as floats are fewer bytes than all sums as codes.
      bool const pays = have_streams(asked) || !sum.sparse;
      EXPECT_EQ(of_few_bytes.format, pays ? asked : NumberFormat::kFloat) << name_of(asked);
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

// Two ranks' terms nearly cancel where the third has none: a format with a scale may err by little there. Short arrays
// go as they are.
TEST(Ways, SumsOfAGroupErrByNoMoreThanTheFormatAskedFor) {
  constexpr float kSums = 3, kTerms = 1000;  // about the largest
  for (NumberFormat const asked : kNumberFormats) {
    bool const rounds_terms = have_streams(asked);
    double const once = test::error_max(wire_format(asked), kSums, kSums);
    double const of_terms = test::error_max(wire_format(asked), kTerms, kTerms);
    double const error = 1e-3 + 2 * once + (rounds_terms ? 3 * of_terms : 0);  // at random it is twice as much
    run_ranks(Group::threads(3), [&](Group const& group) {
      Store store(group, {.threads = 1});
      auto stream = store.make_stream();
      auto const part = static_cast<float>(number(group.rank()) == 0 ? 1 : number(group.rank()) == 1 ? -1 : 0);
      for (std::size_t const size : {std::size_t{50}, std::size_t{70001}}) {
        std::vector<float> sums(size), terms(size);
        for (std::size_t i = 0; i < size; ++i) {
          sums[i] = kSums * std::sin(static_cast<float>(i));
          terms[i] = part * 997 + (part > 0 ? sums[i] : 0);
        }
        for (int sum = 0; sum < 3; ++sum) {
          std::vector<float> values = terms;
          group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(values), {.format = asked}));
          for (std::size_t i = 0; i < size; ++i) {
            ASSERT_NEAR(values[i], sums[i], size == 50 ? 1e-3 : error) << name_of(asked) << ", element " << i;
          }
        }
      }
      if (group.rank() == Rank{0}) {
        auto const lines = group.explain_allreduces();
        EXPECT_EQ(lines.size(), 2U);  // of the links, and of the sums that were chosen for
        EXPECT_NE(lines.back().find(std::string(", as ") + name_of(asked)), std::string::npos) << lines.back();
      }
      store.wait_barrier();
    });
  }
}

}  // namespace
}  // namespace gpups::comm
