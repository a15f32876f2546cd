// SPDX-License-Identifier: Apache-2.0
// The algorithm and format that are selected for an allreduce by modelled time, and the formats that may be used.
#include "comm/collectives/selection/select_algorithm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "gpups/gpups.hpp"
#include "kernels/codec/quantize_buckets.hpp"
#include "tests/comm/collectives/allreduce/sum_shapes.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/wire_oracle.hpp"

namespace gpups::comm::select_algorithm_test {
namespace {

LinkCosts random_costs(test::Random& random) {
  LinkCosts costs;
  for (auto const cost : kLinkCostMembers)
    costs.*cost = std::ldexp(1 + static_cast<double>(test::below(random, 1000)), -40);
  return costs;
}

std::string selected(LinkCosts const& costs, AllreduceShape const& shape) {
  return name_of(select_algorithm(costs, shape));
}

TEST(LinkCosts, TimesAreLinear) {
  test::Random random(1);
  for (AllreduceShape const& shape : {dense(1 << 20), dense(70000, 3), sparse(1 << 20, 10000), sparse(5000, 1, 7)}) {
    LinkCosts const one = random_costs(random), other = random_costs(random);
    LinkCosts both = one;
    for (auto const cost : kLinkCostMembers) both.*cost += 2 * other.*cost;
    auto const of_one = candidates(one, shape), of_other = candidates(other, shape), of_both = candidates(both, shape);
    for (std::size_t i = 0; i < of_both.size(); ++i) {
      double const expected = of_one[i].modelled_s + 2 * of_other[i].modelled_s;
      EXPECT_NEAR(of_both[i].modelled_s, expected, 1e-9 * expected) << name_of(of_both[i]);
    }
  }
}

// For shapes whose bytes, messages and entries can be counted by hand.
TEST(LinkCosts, CountsMessagesAndBytesOfAlgorithms) {
  auto const time = [](char const* name, double LinkCosts::*cost, AllreduceShape const& shape) {
    LinkCosts costs;
    costs.*cost = 1;
    for (Selection const& one : candidates(costs, shape)) {
      if (name_of(one) == name) return one.modelled_s;
    }
    return -1.0;
  };
  EXPECT_EQ(time("reduce_scatter_allgather", &LinkCosts::byte_s, dense(1000, 4)), 6000);
  EXPECT_EQ(time("reduce_scatter_allgather", &LinkCosts::round_s, dense(1000, 4)), 2);
  EXPECT_EQ(time("reduce_scatter_allgather", &LinkCosts::add_s, dense(1000, 4)), 750);
  EXPECT_EQ(time("recursive_doubling", &LinkCosts::byte_s, dense(1000, 4)), 8000);
  EXPECT_EQ(time("recursive_doubling", &LinkCosts::round_s, dense(1000, 5)), 3);
  EXPECT_EQ(time("sparse_allgather", &LinkCosts::round_s, sparse(1000, 10)), 1);
  EXPECT_EQ(time("ssar_split_allgather", &LinkCosts::round_s, sparse(1000, 10)), 2);
  EXPECT_EQ(time("ssar_recursive_doubling", &LinkCosts::round_s, sparse(1000, 10, 8)), 3);
  // 10,000 floats of 100,000 elements and their positions, in two blocks.
  double const stream = time("sparse_allgather", &LinkCosts::byte_s, sparse(100000, 10000, 2));
  EXPECT_GT(stream, 4 * 10000 + 10000);
  EXPECT_LT(stream, 4 * 10000 + 12500 + 2 * 4 + 1);
}

TEST(SelectAlgorithm, TakesLeastModelledTime) {
  EXPECT_EQ(selected(only(&LinkCosts::byte_s), dense(1000)), "reduce_scatter_allgather");  // it sends the fewest bytes
  EXPECT_EQ(selected(only(&LinkCosts::round_s), dense(1000, 2)), "recursive_doubling");  // it sends the fewest messages
  test::Random random(2);
  for (int i = 0; i < 200; ++i) {
    LinkCosts const costs = random_costs(random);
    AllreduceShape const shape =
        i % 2 == 0 ? dense(1 + test::below(random, 1 << 20)) : sparse(1 << 20, test::below(random, 1 << 18));
    Selection const best = select_algorithm(costs, shape);
    for (Selection const& one : candidates(costs, shape)) EXPECT_LE(best.modelled_s, one.modelled_s * (1 + 1e-8));
  }
}

TEST(SelectAlgorithm, TakesSparseForMostlyZeroArrays) {
  LinkCosts const costs = only(&LinkCosts::byte_s);
  AllreduceShape shape = dense(1 << 20, 2);
  EXPECT_FALSE(select_algorithm(costs, shape).algorithm->info.sparse);
  for (std::uint64_t const given : {shape.elements / 2, shape.elements / 100}) {
    shape.nonzeros_max = given;
    EXPECT_TRUE(select_algorithm(costs, shape).algorithm->info.sparse) << given;
  }
}

// Between two ranks both algorithms send the same messages. A machine that rounds the last bits of a time differently
// must not select the other one.
TEST(SelectAlgorithm, EqualTimesTakeFirst) {
  test::Random random(3);
  int gathers = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string const name = selected(random_costs(random), sparse(1 << 20, 1 + test::below(random, 1 << 18), 2));
    EXPECT_NE(name, "ssar_recursive_doubling");
    gathers += name == "sparse_allgather" ? 1 : 0;
  }
  EXPECT_GT(gathers, 100);
}

TEST(SelectAlgorithm, HasResultForEveryShape) {
  for (std::uint64_t const elements : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (std::uint64_t const given : {std::uint64_t{0}, elements}) {
      for (auto const& cost : kLinkCostMembers) {
        Selection const selection = select_algorithm(only(cost), sparse(elements, given, 64));
        ASSERT_NE(selection.algorithm, nullptr);
        EXPECT_TRUE(std::isfinite(selection.modelled_s));
      }
    }
  }
}

TEST(SelectAlgorithm, TimesGrowWithSize) {
  test::Random random(4);
  LinkCosts const costs = random_costs(random);
  auto const grow = [&](AllreduceShape const& small, AllreduceShape const& large) {
    auto const of_small = candidates(costs, small), of_large = candidates(costs, large);
    ASSERT_EQ(of_small.size(), of_large.size());
    for (std::size_t i = 0; i < of_small.size(); ++i) {
      EXPECT_LT(of_small[i].modelled_s, of_large[i].modelled_s) << name_of(of_small[i]);
    }
  };
  grow(dense(1000), dense(2000));
  grow(sparse(100000, 100), sparse(100000, 200));
  grow(sparse(100000, 100), sparse(200000, 100));
}

TEST(SelectAlgorithm, TakesNcclOnlyIfConnected) {
  AllreduceShape shape = dense(1 << 20);
  EXPECT_NE(selected(only(&LinkCosts::add_s), shape), "nccl");
  for (Selection const& one : candidates(only(&LinkCosts::byte_s), shape)) EXPECT_FALSE(one.algorithm->info.by_nccl);
  shape.can_allreduce = true;
  EXPECT_EQ(selected(only(&LinkCosts::add_s), shape), "nccl");  // the fabric adds the values
}

TEST(AlgorithmVariable, ReplacesAutoOnly) {
  using Environment = test::Environment;
  constexpr char const* kVariable = "GPUPS_ALLREDUCE_ALGORITHM";
  for (char const* none : {"", "auto"}) {
    Environment const environment(Environment::Variables{{kVariable, none}});
    EXPECT_EQ(with_environment({}).algorithm, "auto");
  }
  {
    Environment const environment(Environment::Variables{{kVariable, "sparse_allgather"}});
    EXPECT_EQ(with_environment({}).algorithm, "sparse_allgather");
    EXPECT_EQ(with_environment({"auto", WireFormat::kInt8}).format, WireFormat::kInt8);
    EXPECT_EQ(with_environment({"auto", WireFormat::kInt4}).format, WireFormat::kFloat);  // int4 is not supported
    EXPECT_EQ(with_environment({.algorithm = "reduce_scatter_allgather"}).algorithm, "reduce_scatter_allgather");
  }
  {
    Environment const environment(Environment::Variables{{kVariable, "ring"}});
    EXPECT_EQ(with_environment({.algorithm = "reduce_scatter_allgather"}).algorithm, "reduce_scatter_allgather");
    test::expect_error(
        [] { with_environment({}); },
        {"GPUPS_ALLREDUCE_ALGORITHM is \"ring\"", "\"auto\" or to one of reduce_scatter_allgather (float), ", "nccl"});
  }
  Environment const environment(Environment::Variables{{kVariable, std::nullopt}});
  EXPECT_EQ(with_environment({}).algorithm, "auto");
}

// Returns the largest error of numbers that are sent in a format, rounded to the nearest, as one bucket.
double error_of(WireFormat format, std::vector<float> const& bucket) {
  Stream stream(Device::host());
  auto const code = wire_format(format);
  Array<std::uint8_t> const wire(Device::host(), kernels::bucket_bytes(code, bucket.size(), bucket.size()));
  std::vector<float> sent(bucket.size());
  kernels::quantize_buckets(stream, {.values = bucket, .format = code, .bucket = bucket.size(), .encoded = wire});
  kernels::dequantize_buckets(stream, {wire, code, bucket.size(), sent});
  double worst = 0;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(sent[i]) - static_cast<double>(bucket[i])));
  }
  return worst;
}

TEST(WireFormats, AsExactFormatsHaveNoLargerError) {
  int pairs = 0;
  for (WireFormat const format : kNumberFormats) {
    for (WireFormat const other : kNumberFormats) {
      double most = 0;  // as a multiple of the largest error of the other format for the largest number of a bucket
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
      if (claimed) {
        EXPECT_LE(most, 1.001) << name_of(format) << " for " << name_of(other);
      }
      if (format == WireFormat::kHalf) {
        EXPECT_GT(most, 1) << name_of(other);
      }
    }
  }
  EXPECT_EQ(pairs, 8);  // float instead of 5 others, bfloat instead of the 3 with scales
}

AllreduceShape as(WireFormat format, AllreduceShape shape) {
  shape.format = format;
  return shape;
}

// Rounding terms and rounding sums are different errors: an algorithm may only round where algorithms with the
// requested format round.
TEST(WireFormats, CandidatesUseSupportedFormats) {
  for (WireFormat const requested : kNumberFormats) {
    AllreduceShape const shape = as(requested, dense(1000));
    std::set<std::string> names;
    for (Selection const& one : candidates(only(&LinkCosts::byte_s), shape)) {
      EXPECT_TRUE(names.insert(name_of(one)).second);
    }
    std::set<std::string> expected{"reduce_scatter_allgather", "recursive_doubling",   "sparse_allgather",
                                   "ssar_recursive_doubling",  "ssar_split_allgather", "dsar_split_allgather"};
    for (WireFormat const format : {requested, WireFormat::kBFloat16}) {
      if (requested == WireFormat::kFloat || (requested == WireFormat::kHalf && format != requested)) continue;
      std::string const as = std::string(" as ") + name_of(format);
      expected.insert("dsar_split_allgather" + as);
      if (!has_stream_format(requested)) continue;
      for (char const* name : {"sparse_allgather", "ssar_recursive_doubling", "ssar_split_allgather"})
        expected.insert(name + as);
    }
    EXPECT_EQ(names, expected) << name_of(requested);
  }
}

// If bytes are expensive, numbers are sent in few bytes; if coding is expensive, they are sent as floats.
TEST(WireFormats, FastestIsSelected) {
  for (WireFormat const requested : kNumberFormats) {
    for (AllreduceShape const& sum : {dense(1 << 20), sparse(1 << 20, 10000)}) {
      AllreduceShape const shape = as(requested, sum);
      Selection const of_few_bytes = select_algorithm(only(&LinkCosts::byte_s), shape);
      Selection const of_little_coding = select_algorithm(only(&LinkCosts::code_s), shape);
      // For few elements, sparse streams of floats take fewer bytes than arrays of codes.
      bool const pays = has_stream_format(requested) || !sum.sparse;
      EXPECT_EQ(of_few_bytes.format, pays ? requested : WireFormat::kFloat) << name_of(requested);
      if (requested != WireFormat::kFloat) {
        EXPECT_NE(of_little_coding.format, requested) << name_of(requested);
      }
    }
  }
}

// The terms of two ranks nearly cancel and the third has none: errors of formats with a scale must be small. Short
// arrays are sent as floats.
TEST(WireFormats, GroupSumsStayWithinFormatError) {
  constexpr float kSums = 3, kTerms = 1000;  // the largest magnitudes, approximately
  for (WireFormat const requested : kNumberFormats) {
    bool const rounds_terms = has_stream_format(requested);
    double const once = test::error_max(wire_format(requested), kSums, kSums);
    double const of_terms = test::error_max(wire_format(requested), kTerms, kTerms);
    double const error = 1e-3 + 2 * once + (rounds_terms ? 3 * of_terms : 0);  // random rounding doubles the error
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
          group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(values), {.format = requested}));
          for (std::size_t i = 0; i < size; ++i) {
            ASSERT_NEAR(values[i], sums[i], size == 50 ? 1e-3 : error) << name_of(requested) << ", element " << i;
          }
        }
      }
      auto const lines = group.explain_allreduces();
      EXPECT_EQ(lines.size(), 2U);  // one line for the links, and one for the sums that needed a selection
      EXPECT_NE(lines.back().find(std::string(", as ") + name_of(requested)), std::string::npos) << lines.back();
      store.wait_barrier();
    });
  }
}

}  // namespace
}  // namespace gpups::comm::select_algorithm_test
