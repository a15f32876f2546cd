// SPDX-License-Identifier: Apache-2.0
// All allreduce algorithms of floats, over communicators in memory: the same sums on all ranks, in every run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/collectives/allreduce/algorithms.hpp"
#include "comm/collectives/slices.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::test::dense_algorithms_test {
namespace {

using comm::Algorithm;
using comm::Communicator;
using comm::CoTask;
using Floats = std::vector<float>;

Floats floats_of(std::uint32_t rank, std::size_t n) {
  Random random(rank + 1);
  Floats values(n);
  for (auto& value : values) value = std::ldexp(static_cast<float>(below(random, 1 << 20)) - 500000.F, -15);
  return values;
}

constexpr std::size_t kPiece = 1000;

enum class Where { kInPlace, kElsewhere };

// Runs an algorithm and returns the sums of each rank.
std::vector<Floats> run(Algorithm const& algorithm, int ranks, std::size_t n, std::uint64_t seed,
                        Where where = Where::kInPlace) {
  struct Arrays {
    Array<float> terms, sums;
  };
  std::vector<Floats> results(static_cast<std::size_t>(ranks));
  MemoryCommunicators communicators(ranks, seed);
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto const arrays = std::make_shared<Arrays>();
    Floats const mine = floats_of(number(comm.me()), n);
    arrays->terms = to_device(comm.stream(), mine);
    arrays->sums = Array<float>(comm.stream().device(), n);
    View<float> const sums = where == Where::kInPlace ? arrays->terms.view() : arrays->sums.view();
    comm::DenseAllreduce const of{.values = sums, .terms = arrays->terms, .keep = arrays, .chunk = kPiece};
    co_await algorithm.sum_array(comm, of);
    results[number(comm.me())] = to_host(comm.stream(), sums);
    if (where == Where::kElsewhere) {
      EXPECT_EQ(to_host(comm.stream(), arrays->terms.view()), mine);
    }
  });
  return results;
}

class AllreduceAlgorithms : public testing::TestWithParam<Algorithm> {};

TEST_P(AllreduceAlgorithms, AllRanksGetTheSameSums) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    // With the last size, slices have more pieces than are in flight at a time.
    auto const some = static_cast<std::size_t>(ranks);
    for (std::size_t const n : {std::size_t{0}, std::size_t{1}, some - 1, std::size_t{1000}, some * kPiece * 6 + 5}) {
      auto const results = run(GetParam(), ranks, n, 7);
      for (auto const& result : results) EXPECT_EQ(result, results[0]) << ranks << " ranks, " << n;
      std::vector<double> sums(n);
      for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
        auto const terms = floats_of(rank, n);
        for (std::size_t i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
      }
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(static_cast<double>(results[0][i]), sums[i], 1e-4) << ranks << " ranks, element " << i;
      }
    }
  }
}

TEST_P(AllreduceAlgorithms, SumsDoNotDependOnArrivalOrder) {
  auto const first = run(GetParam(), 5, 70001, 1)[0];
  for (std::uint64_t seed = 2; seed < 12; ++seed) EXPECT_EQ(run(GetParam(), 5, 70001, seed)[3], first);
}

TEST_P(AllreduceAlgorithms, InPlaceAndOutOfPlaceAreEqual) {
  for (int const ranks : {1, 2, 3, 4, 7}) {
    std::size_t const n = static_cast<std::size_t>(ranks) * kPiece * 6 + 5;
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
      EXPECT_EQ(run(GetParam(), ranks, n, seed, Where::kElsewhere), run(GetParam(), ranks, n, seed)) << ranks;
    }
  }
}

// A rank's sparse vector, with about one of `one_of` elements.
struct Sparse {
  std::vector<std::uint32_t> indices;
  Floats values;
};
Sparse sparse_of(std::uint32_t rank, std::size_t size, std::uint64_t one_of) {
  Random random(rank + 77);
  Sparse vector;
  for (std::size_t i = 0; i < size; ++i) {
    if (random() % one_of != 0) continue;
    vector.indices.push_back(static_cast<std::uint32_t>(i));
    vector.values.push_back(static_cast<float>(below(random, 1000)) - 500.F);  // sums are exact
  }
  return vector;
}
Floats sum_of(int ranks, std::size_t size, std::uint64_t one_of) {
  Floats sums(size);
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    auto const vector = sparse_of(rank, size, one_of);
    for (std::size_t i = 0; i < vector.indices.size(); ++i) sums[vector.indices[i]] += vector.values[i];
  }
  return sums;
}
// Returns the elements first .. first + size - 1 of the sum as an array.
Floats dense(Stream& stream, ReducedVector const& sum) {
  auto const values = to_host(stream, sum.values.view());
  if (!sum.sparse) return values;
  auto const indices = to_host(stream, sum.indices.view());
  Floats all(sum.size);
  for (std::size_t i = 0; i < indices.size(); ++i) all.at(indices[i] - sum.first) = values.at(i);
  return all;
}

// Sums the ranks' sparse vectors as arrays, and returns the sums of each rank.
std::vector<Floats> sums_of_arrays(Algorithm const& algorithm, int ranks, std::size_t size, std::uint64_t one_of,
                                   WireFormat format = WireFormat::kFloat) {
  std::vector<Floats> results(static_cast<std::size_t>(ranks));
  MemoryCommunicators(ranks, 3).run([&](Communicator& comm) -> CoTask<> {
    auto const mine = sparse_of(number(comm.me()), size, one_of);
    Floats all(size);
    for (std::size_t i = 0; i < mine.indices.size(); ++i) all[mine.indices[i]] = mine.values[i];
    auto const array = std::make_shared<Array<float>>(to_device(comm.stream(), all));
    comm::DenseAllreduce const of{.values = *array, .keep = array, .chunk = kPiece, .format = format};
    co_await algorithm.sum_array(comm, of);
    results[number(comm.me())] = to_host(comm.stream(), array->view());
  });
  return results;
}

TEST_P(AllreduceAlgorithms, SumMostlyZeroArrays) {
  for (int const ranks : {1, 2, 3, 5, 8}) {
    for (std::size_t const size : {std::size_t{1000}, std::size_t{200003}}) {
      for (std::uint64_t const one_of : {2, 50, 1000000}) {
        Floats const want = sum_of(ranks, size, one_of);
        for (auto const& result : sums_of_arrays(GetParam(), ranks, size, one_of)) {
          EXPECT_EQ(result, want) << ranks << " ranks, " << size << " elements, one of " << one_of;
        }
      }
    }
  }
}

// Each rank that sends a number rounds it at most once. Whole numbers below 2^11 are exact in half. Sums are at most
// 1500: errors are at most three steps of int8, 1500 / 127 each, or two of int4, 1500 / 7.
TEST_P(AllreduceAlgorithms, SumInEachSupportedFormat) {
  if (!GetParam().info.sparse) GTEST_SKIP() << "the algorithm supports only float";
  constexpr std::size_t kSize = 70001;
  Floats const want = sum_of(3, kSize, 4);
  for (auto const format : {WireFormat::kHalf, WireFormat::kBFloat16, WireFormat::kInt8, WireFormat::kInt4}) {
    if (!GetParam().has(format)) continue;
    auto const results = sums_of_arrays(GetParam(), 3, kSize, 4, format);
    double const error = format == WireFormat::kHalf ? 0 : format == WireFormat::kInt4 ? 430 : 36;
    for (std::size_t i = 0; i < kSize; ++i) {
      ASSERT_NEAR(static_cast<double>(results[0][i]), static_cast<double>(want[i]), error)
          << name_of(format) << ", element " << i;
    }
    for (auto const& result : results) EXPECT_EQ(result, results[0]) << name_of(format);
    EXPECT_EQ(results[0] == want, format == WireFormat::kHalf) << name_of(format);
  }
}

// Calls sum(communicator, vector) on all ranks and checks the result of each: the whole sum, or the rank's slice.
template <class Sum>
void expect_sparse_sums(Sum sum, bool slices) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (std::size_t const size : {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(ranks) - 1,
                                   std::size_t{1000}, std::size_t{100003}}) {
      for (std::uint64_t const one_of : {1, 3, 200, 1000000}) {
        auto const want = sum_of(ranks, size, one_of);
        MemoryCommunicators communicators(ranks, size + one_of);
        communicators.run([&](Communicator& comm) -> CoTask<> {
          auto const mine = std::make_shared<Sparse>(sparse_of(number(comm.me()), size, one_of));
          SparseView const vector{size, mine->indices, mine->values};
          comm::SparseAllreduce const of{.vector = vector, .keep = mine};
          auto const result = co_await sum(comm, of);
          auto const slice = slices ? comm::slice_of(size, comm.ranks(), comm.me()) : comm::Slice{0, size};
          EXPECT_EQ(result.first, slice.first);
          EXPECT_EQ(result.size, slice.size);
          auto const begin = want.begin() + static_cast<std::ptrdiff_t>(slice.first);
          EXPECT_EQ(dense(comm.stream(), result), Floats(begin, begin + static_cast<std::ptrdiff_t>(slice.size)))
              << ranks << " ranks, " << size << " elements, one of " << one_of;
        });
      }
    }
  }
}

TEST_P(AllreduceAlgorithms, SumSparseVectors) { expect_sparse_sums(GetParam().sum_vector, false); }

TEST_P(AllreduceAlgorithms, RejectInvalidIndices) {
  auto const sum = [&](std::vector<std::uint32_t> const& indices) {
    MemoryCommunicators(2).run([&](Communicator& comm) -> CoTask<> {
      auto const mine = std::make_shared<Sparse>(Sparse{indices, Floats(indices.size(), 1)});
      SparseView const vector{10, mine->indices, mine->values};
      comm::SparseAllreduce const of{.vector = vector, .keep = mine};
      (void)co_await GetParam().sum_vector(comm, of);
    });
  };
  expect_error([&] { sum({1, 10}); }, {"a sparse vector of 10 elements has the index 10"});
  expect_error([&] { sum({1, 9999, 2}); }, {"a sparse vector of 10 elements has the index 9999"});
  expect_error([&] { sum({1, 3, 3}); }, {"the indices of a sparse vector are not ascending"});
  expect_error([&] { sum({1, 3, 2}); }, {"the indices of a sparse vector are not ascending"});
}

// With equal rounding in each run, the mean of many sums would keep the error of one.
TEST(DsarSparseVector, RoundsDifferentlyInEachRun) {
  constexpr std::size_t kSize = 1000;
  std::vector<Floats> sums;
  MemoryCommunicators communicators(2);
  for (int run = 0; run < 2; ++run) {
    communicators.run([&](Communicator& comm) -> CoTask<> {
      auto const mine = std::make_shared<Sparse>(sparse_of(number(comm.me()), kSize, 1));
      SparseView const vector{kSize, mine->indices, mine->values};
      comm::SparseAllreduce const of{.vector = vector, .keep = mine, .format = WireFormat::kInt4};
      auto const result = co_await comm::dsar_sparse_vector(comm, of);
      if (comm.me() == Rank{0}) sums.push_back(to_host(comm.stream(), result.values.view()));
    });
  }
  EXPECT_NE(sums.at(0), sums.at(1));
}

TEST(ReduceScatterSparseVector, EachRankGetsSumOfItsSlice) {
  expect_sparse_sums(comm::reduce_scatter_sparse_vector, true);
}

INSTANTIATE_TEST_SUITE_P(All, AllreduceAlgorithms,
                         testing::ValuesIn(comm::algorithms().begin(), comm::algorithms().end()),
                         [](auto const& of) { return std::string(of.param.info.name); });

}  // namespace
}  // namespace gpups::test::dense_algorithms_test
