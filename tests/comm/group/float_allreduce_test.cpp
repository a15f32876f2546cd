// SPDX-License-Identifier: Apache-2.0
// Allreduces of floats over the ranks of a group: sums over threads and over a simulated network, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/float_allreduce_workload.hpp"

namespace gpups::test::float_allreduce_test {
namespace {

void sum_sizes(Group const& group, Device device, std::vector<std::size_t> const& sizes) {
  Store store(group, {.device = device, .threads = 1});
  auto stream = store.make_stream();
  for (std::size_t const size : sizes) FloatSums(group, stream, size).check_all();
  store.wait_barrier();
}

TEST(FloatAllreduce, SumsOverThreads) {
  std::vector<Device> devices{Device::host()};
  if (cuda_device_count() > 0) devices.push_back(Device::cuda(0));
  for (Device const device : devices) {
    for (int const ranks : {1, 2, 3, 4, 5, 8}) {
      auto const group = ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks);
      std::size_t const longest = ranks <= 2 ? 600000 : 100000;  // slices of several blocks; one block
      std::vector<std::size_t> const sizes{0, 1, static_cast<std::size_t>(ranks) - 1, 5000, longest};
      run_ranks(group, [&](Group const& of) { sum_sizes(of, device, sizes); });
    }
  }
}

TEST(FloatAllreduce, SumsOverSimulatedNetwork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    int const ranks = 2 + static_cast<int>(seed % 4);
    run_ranks(Group::simulated(ranks, {.seed = seed}), [&](Group const& group) {
      sum_sizes(group, Device::host(), {seed % 3, 40, 3000 + seed * 977});
    });
  }
}

// The sums are in flight together before the link costs are known.
TEST(FloatAllreduce, ManySumsMayStartBeforeSelection) {
  for (int const ranks : {2, 3, 4}) {
    for (std::size_t const size : {std::size_t{5}, std::size_t{3000}, std::size_t{200000}}) {
      run_ranks(Group::threads(ranks), [&](Group const& group) {
        Store store(group, {.threads = 1});
        auto stream = store.make_stream();
        std::vector<std::vector<float>> values(12, std::vector<float>(size, 1));
        std::vector<float> other(size + 1);  // its selection is the first, and measures the links
        std::vector<CollectiveRequest> sums{group.begin_allreduce(stream, other)};
        for (auto& of : values) sums.push_back(group.begin_allreduce(stream, of));
        for (auto const& sum : sums) group.wait_allreduce(stream, sum);
        for (auto const& of : values) EXPECT_EQ(of, std::vector<float>(size, static_cast<float>(ranks)));
        store.wait_barrier();
      });
    }
  }
}

// Some indices do not fit in 31 bits. An array of this size would take 16 GiB on each rank.
TEST(FloatAllreduce, SparseVectorsMayHave2To32Elements) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kSize = 1ULL << 32;
  constexpr std::uint32_t kCommon[] = {0, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF};
  auto const own = [](std::uint32_t rank) { return 0x90000000 + rank * 0x20000000; };
  auto const sums_in = [&](ReducedVector const& sum) {
    std::map<std::uint64_t, float> found;
    for (std::size_t i = 0; i < sum.indices.size(); ++i) found[sum.indices.data()[i]] = sum.values.data()[i];
    return found;
  };
  std::map<std::uint64_t, float> expected;
  for (std::uint32_t const i : kCommon) expected[i] = kRanks;
  for (std::uint32_t r = 0; r < kRanks; ++r) expected[own(r)] = static_cast<float>(r) + 2;
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<std::uint32_t> indices(std::begin(kCommon), std::end(kCommon));
    std::vector<float> values(indices.size(), 1);
    auto const mine = number(group.rank());
    indices.insert(indices.end() - 1, own(mine));
    values.insert(values.end() - 1, static_cast<float>(mine) + 2);
    SparseView const vector{.size = kSize, .indices = indices, .values = values};
    for (char const* algorithm : {"auto", "sparse_allgather", "ssar_recursive_doubling", "ssar_split_allgather"}) {
      auto const sum = group.wait_result(stream, group.begin_allreduce(stream, vector, {.algorithm = algorithm}));
      stream.wait();
      EXPECT_TRUE(sum.sparse) << algorithm;
      EXPECT_EQ(sum.size, kSize) << algorithm;
      EXPECT_EQ(sum.indices.size(), expected.size()) << algorithm;
      EXPECT_EQ(sums_in(sum), expected) << algorithm;
    }
    auto const slice = group.wait_result(stream, group.begin_reduce_scatter(stream, vector));
    stream.wait();
    std::map<std::uint64_t, float> of_slice;
    for (auto const& [i, sum] : expected) {
      if (i >= slice.first && i - slice.first < slice.size) of_slice[i] = sum;
    }
    EXPECT_EQ(slice.first, kSize * mine / kRanks);
    EXPECT_EQ(slice.indices.size(), of_slice.size());
    EXPECT_EQ(sums_in(slice), of_slice);
    store.wait_barrier();
  });
}

// Returns the sum of rank 0's values and another rank's zeros.
std::vector<float> sum_with_zeros(std::vector<float> const& values, AllreduceOptions const& options) {
  std::vector<float> sums;
  run_ranks(Group::threads(2), [&](Group const& group) {
    Store const store(group, {.threads = 1});
    auto stream = store.make_stream();
    std::vector<float> mine = group.rank() == Rank{0} ? values : std::vector<float>(values.size());
    group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(mine), options));
    if (group.rank() == Rank{0}) sums = mine;
  });
  return sums;
}

TEST(FloatAllreduce, OutOfRangeValuesSaturateOrBecomeNaN) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (char const* algorithm :
       {"sparse_allgather", "ssar_recursive_doubling", "ssar_split_allgather", "dsar_split_allgather"}) {
    SCOPED_TRACE(algorithm);
    auto const sum = [algorithm](WireFormat format, std::vector<float> const& values) {
      return sum_with_zeros(values, {.algorithm = algorithm, .format = format});
    };
    auto const halves = sum(WireFormat::kHalf, {1e30F, -1e30F, 70000, 1, kInfinite, -kInfinite, kNan});
    EXPECT_EQ(std::vector<float>(halves.begin(), halves.begin() + 4), (std::vector<float>{65504, -65504, 65504, 1}));
    auto const bfloats = sum(WireFormat::kBFloat16, {3.4e38F, -3.4e38F, 1, 1, kInfinite, -kInfinite, kNan});
    EXPECT_EQ(std::vector<float>(bfloats.begin(), bfloats.begin() + 4),
              (std::vector<float>{0x1.FEp127F, -0x1.FEp127F, 1, 1}));
    for (std::size_t i = 4; i < 7; ++i) EXPECT_TRUE(std::isnan(halves[i]) && std::isnan(bfloats[i])) << i;
    for (float const bad : {kInfinite, kNan, 0x1p127F}) {
      auto const block = sum(WireFormat::kInt8, {1, 1, bad, 2});  // the first two may be in the slice of another rank
      EXPECT_TRUE(std::isnan(block[2]) && std::isnan(block[3])) << bad;
    }
    EXPECT_EQ(sum(WireFormat::kFloat, {kInfinite, 1e30F}), (std::vector<float>{kInfinite, 1e30F}));
  }
}

// Values saturate when they are sent, at different points in different algorithms.
TEST(FloatAllreduce, OnlySentValuesSaturate) {
  for (auto const& [algorithm, expected] :
       {std::pair("sparse_allgather", 80000.0F), {"ssar_split_allgather", 65504.0F}}) {
    run_ranks(Group::threads(2), [algorithm = algorithm, expected = expected](Group const& group) {
      Store const store(group, {.threads = 1});
      auto stream = store.make_stream();
      std::vector<float> values{40000, 40000};
      AllreduceOptions const options{.algorithm = algorithm, .format = WireFormat::kHalf};
      group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(values), options));
      EXPECT_EQ(values, (std::vector<float>{expected, expected})) << algorithm;
    });
  }
}

// Returns the error of each rank's body; empty if there is none.
std::vector<std::string> errors_of(int ranks, std::function<void(Group const&, Stream&)> const& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  EXPECT_ANY_THROW(run_ranks(Group::threads(ranks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    try {
      body(group, stream);
      store.wait_barrier();
    } catch (std::exception const& error) {
      errors[number(group.rank())] = error.what();
      throw;
    }
  }));
  return errors;
}

TEST(FloatAllreduceErrors, AllRanksRejectDifferentCalls) {
  for (std::string const way : {"size", "algorithm", "kind"}) {
    auto const errors = errors_of(3, [&](Group const& group, Stream& stream) {
      bool const other = group.rank() == Rank{1};
      std::vector<float> values(other && way == "size" ? 1000 : 3);
      std::vector<std::uint32_t> indices{0, 1, 2};
      AllreduceOptions const options{.algorithm = other && way == "algorithm" ? "recursive_doubling"
                                                                              : "reduce_scatter_allgather"};
      if (other && way == "kind") {
        (void)group.wait_result(stream, group.begin_allreduce(stream, SparseView{3, indices, values}, options));
      } else {
        group.wait_allreduce(stream, group.begin_allreduce(stream, values, options));
      }
    });
    std::string const words =
        way == "size" ? "floats by reduce_scatter_allgather in float in allreduce 0" : "floats by";
    for (auto const& error : errors) {
      EXPECT_NE(error.find(words), std::string::npos) << way << ": " << error;
      EXPECT_NE(error.find("all ranks must start the same collectives"), std::string::npos) << way << ": " << error;
    }
  }
}

TEST(FloatAllreduceErrors, ErrorNamesRankFailingDuringSum) {
  auto const errors = errors_of(3, [](Group const& group, Stream& stream) {
    std::vector<float> values(1 << 20);
    auto const first = group.begin_allreduce(stream, values);
    if (group.rank() == Rank{1}) throw std::runtime_error("the disk is on fire");
    std::vector<float> more(1 << 20);
    auto const second = group.begin_allreduce(stream, more);
    group.wait_allreduce(stream, first);
    group.wait_allreduce(stream, second);
  });
  for (std::size_t const rank : {0, 2}) {
    EXPECT_NE(errors[rank].find("rank 1 is lost"), std::string::npos) << errors[rank];
    EXPECT_NE(errors[rank].find("the disk is on fire"), std::string::npos) << errors[rank];
  }
}

TEST(FloatAllreduceErrors, RejectsMisuse) {
  auto const group = Group::alone();
  Store const store(group, {.threads = 1});
  auto stream = store.make_stream();
  std::vector<float> values(3);
  std::vector<std::uint32_t> indices(2);
  expect_error(
      [&] { group.begin_allreduce(stream, values, {.algorithm = "magic"}); },
      {"there is no allreduce algorithm \"magic\"", "reduce_scatter_allgather (float), recursive_doubling (float)"});
  expect_error(
      [&] {
        group.begin_allreduce(stream, values, {.algorithm = "reduce_scatter_allgather", .format = WireFormat::kHalf});
      },
      {"the allreduce algorithm \"reduce_scatter_allgather\" does not support the wire format half", "use \"auto\"",
       "reduce_scatter_allgather (float)"});
  for (int const format : {6, 64, 99, 255}) {
    expect_error([&] { group.begin_allreduce(stream, values, {.format = WireFormat(format)}); },
                 {"does not support the wire format unknown"});
  }
  expect_error(
      [&] {
        group.begin_allreduce(stream, SparseView{5, indices, values});
      },
      {"5 elements has 2 indices and 3 values"});
  expect_error(
      [&] {
        group.begin_allreduce(stream, SparseView{(1ULL << 32) + 1, indices, values});
      },
      {"4294967297 floats in one sum are too many"});
  SparseView const vector{5, indices, View<float const>(values).slice(0, 2)};
  expect_error([&] { group.begin_reduce_scatter(stream, vector, WireFormat::kInt4); },
               {"begin_reduce_scatter was given the format int4", "use float, half, bfloat or int8"});
  auto const writes = group.begin_allreduce(stream, values);
  expect_error([&] { group.wait_result(stream, writes); }, {"begun with a View", "call wait_allreduce"});
  group.wait_allreduce(stream, writes);
  auto const gives = group.begin_allreduce(stream, Array<float>(Device::host(), 3));
  expect_error([&] { group.wait_allreduce(stream, gives); }, {"begun without a View", "call wait_result"});
  EXPECT_EQ(group.wait_result(stream, gives).size, 3U);
  expect_error([&] { group.wait_result(stream, gives); }, {"a sum that was waited for before"});
}

}  // namespace
}  // namespace gpups::test::float_allreduce_test
