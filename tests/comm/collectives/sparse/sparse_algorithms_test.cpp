// SPDX-License-Identifier: Apache-2.0
// Sparse allreduce algorithms: correct sums, equal bits on all ranks, no lost units, and the number of bytes sent.
#include "comm/collectives/sparse/algorithms.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "comm/base/peer_error.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::test::sparse_algorithms_test {
namespace {

using comm::Communicator;
using comm::CoTask;
using comm::StreamInput;
using comm::StreamSum;
using kernels::StreamValues;
using kernels::ValueForm;

constexpr int kGrid = -30;

template <class T>
struct Vector {
  std::vector<std::uint32_t> indices;
  std::vector<T> values;
  std::vector<T> residual;
};

// Random elements with random gaps; values are multiples of 2^-20, or of 2^10 units, below 1.
template <class T>
Vector<T> vector(Random& random, std::uint64_t size, double density, bool with_residual) {
  Vector<T> v;
  double const scale = density < 1 ? 1 / std::log1p(-density) : 0;
  for (double at = 0;; ++at) {
    at += std::floor(std::log(1 - uniform(random)) * scale);
    if (at >= static_cast<double>(size)) break;
    v.indices.push_back(static_cast<std::uint32_t>(at));
    auto const some = static_cast<std::int64_t>(below(random, 1 << 20)) + 1;
    auto const value = below(random, 2) == 0 ? some : -some;
    v.values.push_back(std::is_same_v<T, float> ? static_cast<T>(static_cast<float>(value) * 0x1p-20F)
                                                : static_cast<T>(value * 1024));
  }
  if (with_residual) v.residual.assign(size, T{0});
  return v;
}

template <class T>
StreamInput<T> terms(Communicator& comm, Vector<T>& v, std::uint64_t size, ValueForm form) {
  return {comm.stream(), v.indices, v.values, size, form, v.residual, nullptr};
}

template <class T>
struct NamedAlgorithm {
  char const* name;
  std::function<CoTask<StreamSum<T>>(Communicator&, StreamInput<T>)> run;
  bool keeps_all;  // sends all elements, with rounded values in some formats
};
template <class T>
std::vector<NamedAlgorithm<T>> all_algorithms() {
  auto const few = [](Communicator& comm, StreamInput<T> t) { return comm::spardl<T>(comm, t, 60); };
  auto const many = [](Communicator& comm, StreamInput<T> t) { return comm::spardl<T>(comm, t, 1 << 30); };
  return {{"gathering", comm::sparse_allgather<T>, true},
          {"recursive_doubling", comm::ssar_recursive_doubling<T>, true},
          {"owners", comm::ssar_split_allgather<T>, true},
          {"spardl", many, true},
          {"cut", few, false}};
}

template <class T>
double number(T x) {
  return std::is_same_v<T, float> ? static_cast<double>(x) : static_cast<double>(x) * 0x1p-30;
}

// Returns the sums, after checking that all ranks get the same, as entries and as an array.
template <class T>
std::vector<T> sums(MemoryCommunicators& communicators, std::vector<Vector<T>>& vectors, std::uint64_t size,
                    ValueForm form, NamedAlgorithm<T> const& algorithm) {
  std::vector<std::vector<T>> got(vectors.size(), std::vector<T>(size, T{9}));
  std::size_t done = 0;
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto& mine = vectors[number(comm.me())];
    auto total = co_await algorithm.run(comm, terms(comm, mine, size, form));
    auto& all = got[number(comm.me())];
    total.write(comm, all);
    auto const entries = total.entries(comm);
    std::size_t nonzero = 0;
    for (T const x : all) nonzero += x != 0 ? 1 : 0;
    EXPECT_EQ(entries.indices.size(), nonzero);
    for (std::size_t i = 0; i < entries.indices.size(); ++i) EXPECT_EQ(all[entries.indices[i]], entries.values[i]);
    ++done;
  });
  EXPECT_EQ(done, vectors.size());
  for (auto const& other : got) EXPECT_TRUE(other == got[0]) << "ranks have different sums";
  return got[0];
}

template <class T>
class SparseAlgorithms : public testing::Test {};
using Types = testing::Types<float, std::int64_t>;
TYPED_TEST_SUITE(SparseAlgorithms, Types);

TYPED_TEST(SparseAlgorithms, SumsMatchReferenceMap) {
  using T = TypeParam;
  Random random(1);
  for (auto const& algorithm : all_algorithms<T>()) {
    if (!algorithm.keeps_all) continue;
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (std::uint64_t const size : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{70000}}) {
        for (double const density : {.003, .2, .9}) {
          SCOPED_TRACE(testing::Message()
                       << algorithm.name << ", " << ranks << " ranks, " << size << " at " << density);
          std::vector<Vector<T>> vectors;
          std::map<std::uint32_t, double> want;
          for (int r = 0; r < ranks; ++r) {
            vectors.push_back(vector<T>(random, size, r == 1 ? 1e-9 : density, false));
            auto const& v = vectors.back();
            for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += number(v.values[i]);
          }
          MemoryCommunicators communicators(ranks, random());
          auto const got = sums<T>(communicators, vectors, size, {StreamValues::kUnits, kGrid}, algorithm);
          for (std::uint64_t i = 0; i < size; ++i) {
            auto const at = want.find(static_cast<std::uint32_t>(i));
            ASSERT_EQ(number(got[i]), at == want.end() ? 0 : at->second) << "at " << i;
          }
        }
      }
    }
  }
}

// The terms are the sum plus the residuals of all ranks, to the last unit.
TEST(SparseAlgorithmsOfUnits, NoUnitIsLost) {
  using T = std::int64_t;
  Random random(2);
  for (auto const& algorithm : all_algorithms<T>()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (auto const values : {StreamValues::kHalf, StreamValues::kInt8, StreamValues::kUnits}) {
        SCOPED_TRACE(testing::Message() << algorithm.name << ", " << ranks << " ranks, form "
                                        << static_cast<int>(values));
        std::uint64_t const size = 66000;
        std::vector<Vector<T>> vectors;
        std::vector<T> want(size, 0);
        for (int r = 0; r < ranks; ++r) {
          vectors.push_back(vector<T>(random, size, .01, true));
          auto const& v = vectors.back();
          for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += v.values[i];
        }
        MemoryCommunicators communicators(ranks, random());
        auto got = sums<T>(communicators, vectors, size, {values, kGrid}, algorithm);
        std::size_t nonzero = 0, kept = 0;
        for (T const x : got) nonzero += x != 0 ? 1 : 0;
        for (auto const& v : vectors) {
          for (std::uint64_t i = 0; i < size; ++i) {
            got[i] += v.residual[i];
            kept += v.residual[i] != 0 ? 1 : 0;
          }
        }
        EXPECT_TRUE(got == want);
        EXPECT_EQ(kept == 0, values == StreamValues::kUnits && algorithm.keeps_all);
        EXPECT_LE(nonzero, algorithm.keeps_all ? size : 60);
      }
    }
  }
}

TEST(SparseAlgorithmsOfFloats, ReduceScatterSumsSlices) {
  Random random(3);
  std::uint64_t const size = 5000;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::vector<Vector<float>> vectors;
    std::vector<float> want(size, 0), got(size, 0);
    for (int r = 0; r < ranks; ++r) {
      vectors.push_back(vector<float>(random, size, .1, false));
      auto const& v = vectors.back();
      for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += v.values[i];
    }
    MemoryCommunicators(ranks).run([&](Communicator& comm) -> CoTask<> {
      auto& mine = vectors[number(comm.me())];
      auto total = co_await comm::sparse_reduce_scatter<float>(
          comm, terms(comm, mine, size, ValueForm{StreamValues::kFloat, 0}));
      EXPECT_EQ(total.streams().size(), static_cast<std::size_t>(ranks));
      auto const& header = total.streams()[0].header();
      total.write(comm, View<float>(got).slice(header.first, header.size));
    });
    EXPECT_EQ(got, want);
  }
}

TEST(SparseAlgorithmsOfFloats, DsarErrorIsBoundedAndKept) {
  Random random(4);
  std::uint64_t const size = 5001;
  for (auto const format : {kernels::Format::kFloat, kernels::Format::kInt8, kernels::Format::kInt4}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      std::vector<Vector<float>> vectors;
      std::vector<double> want(size, 0);
      for (int r = 0; r < ranks; ++r) {
        vectors.push_back(vector<float>(random, size, .5, true));
        auto const& v = vectors.back();
        for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += v.values[i];
      }
      std::vector<std::vector<float>> got(vectors.size(), std::vector<float>(size, 9));
      MemoryCommunicators(ranks).run([&](Communicator& comm) -> CoTask<> {
        std::size_t const me = number(comm.me());
        comm::DsarOutput const owners{got[me], {}, format, {.seed = 5, .use = 1}};
        co_await comm::dsar_split_allgather(comm, terms(comm, vectors[me], size, ValueForm{StreamValues::kHalf, 0}),
                                            owners);
      });
      double const step = format == kernels::Format::kFloat ? 0 : format == kernels::Format::kInt8 ? 1. / 127 : 1. / 7;
      for (std::uint64_t i = 0; i < size; ++i) {
        double kept = 0;
        for (auto const& v : vectors) kept += v.residual[i];
        ASSERT_NEAR(got[0][i], want[i], ranks * (step + 0x1p-11) * 1.01) << "at " << i;
        ASSERT_NEAR(got[0][i] + kept, want[i], 1e-6) << "at " << i;
      }
      for (auto const& other : got) EXPECT_EQ(other, got[0]);
    }
  }
}

// 4 ranks, 16 million elements, 1 % of them at random places.
template <class Run>
double megabytes(Run run) {
  constexpr std::uint64_t kSize = 16'000'000;
  Random random(5);
  std::vector<Vector<float>> vectors;
  for (int r = 0; r < 4; ++r) vectors.push_back(vector<float>(random, kSize, .01, false));
  MemoryCommunicators communicators(4);
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto& mine = vectors[number(comm.me())];
    co_await run(comm, terms(comm, mine, kSize, ValueForm{StreamValues::kHalf, 0}));
  });
  return static_cast<double>(communicators.sent().bytes) / 1e6;
}

TEST(SparseAlgorithmBytes, StayWithinLimits) {
  EXPECT_LE(megabytes(comm::ssar_recursive_doubling<float>), 5.85);
  EXPECT_LE(megabytes(comm::sparse_allgather<float>), 5.95);
  EXPECT_LE(megabytes(comm::ssar_split_allgather<float>), 7.2);
  EXPECT_LE(megabytes(comm::sparse_reduce_scatter<float>), 1.49);
  EXPECT_LE(megabytes([](Communicator& comm, StreamInput<float> t) { return comm::spardl<float>(comm, t, 160'000); }),
            2.98);
}

// The bytes depend on the number of elements kept, not on the number of ranks.
TEST(SparseAlgorithmBytes, OfSparDLDoNotGrowWithRanks) {
  constexpr std::uint64_t kSize = 1'000'000;
  constexpr std::size_t kMost = 10'000;
  for (int const ranks : {2, 3, 4, 6, 8}) {
    Random random(6);
    std::vector<Vector<float>> vectors;
    for (int r = 0; r < ranks; ++r) vectors.push_back(vector<float>(random, kSize, .01, false));
    MemoryCommunicators communicators(ranks);
    communicators.run([&](Communicator& comm) -> CoTask<> {
      auto& mine = vectors[number(comm.me())];
      co_await comm::spardl<float>(comm, terms(comm, mine, kSize, ValueForm{StreamValues::kHalf, 0}), kMost);
    });
    EXPECT_LE(static_cast<double>(communicators.sent(0).bytes), 2. * kMost * 3.12 * (ranks - 1) / ranks + 100. * ranks);
    EXPECT_LE(communicators.sent(0).messages, static_cast<std::size_t>(ranks - 1) + 3);
  }
}

// A changed bit that would lead out of the bytes or the range of a stream is an error that names the sender. A changed
// bit of a value gives another value, which only the checksums of a transport detect.
TYPED_TEST(SparseAlgorithms, ChangedStreamsNameSenderOrChangeValues) {
  using T = TypeParam;
  constexpr std::uint64_t kSize = 140000;
  Random random(11);
  for (auto const& algorithm : all_algorithms<T>()) {
    std::size_t rejected = 0, summed = 0, of_headers = 0;
    for (int trial = 0; trial < 400; ++trial) {
      int const ranks = 2 + trial % 3;
      std::vector<Vector<T>> vectors;
      for (int r = 0; r < ranks; ++r) vectors.push_back(vector<T>(random, kSize, .002, false));
      MemoryCommunicators communicators(ranks, static_cast<std::uint64_t>(trial));
      std::size_t const which = trial % 4;
      std::size_t arrived = 0, bit = 0;
      Rank changed{};
      communicators.on_arrival = [&](Rank from, View<std::uint8_t> bytes) {
        if (arrived++ != which || bytes.empty()) return;
        std::size_t const first_bits = 8 * std::min(bytes.size(), sizeof(kernels::StreamHeader) + 16);
        bit = below(random, trial % 2 == 0 ? first_bits : 8 * bytes.size());
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        changed = from;
      };
      try {
        communicators.run([&](Communicator& comm) -> CoTask<> {
          auto const values = std::is_same_v<T, float> ? StreamValues::kFloat : StreamValues::kUnits;
          auto total =
              co_await algorithm.run(comm, terms(comm, vectors[number(comm.me())], kSize, ValueForm{values, kGrid}));
          std::vector<T> all(kSize);
          total.write(comm, all);
          total.entries(comm);
        });
        ++summed;
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), changed) << algorithm.name << ", trial " << trial << ": " << error.what();
        ++rejected;
        of_headers += bit / 8 < sizeof(kernels::StreamHeader) ? 1 : 0;
      }
    }
    EXPECT_GT(rejected, 100U) << algorithm.name;
    EXPECT_GT(of_headers, 50U) << algorithm.name;
    EXPECT_GT(summed, 0U) << algorithm.name;
  }
}

// Sends invalid bytes to rank 0 in place of a stream.
void send_wrong(Communicator& comm, std::vector<std::uint8_t> bytes) {
  comm::Bytes message(Device::host(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), message.data());
  comm.send(Rank{0}, std::move(message));
}

std::string error_of(std::vector<std::uint8_t> const& bytes) {
  std::vector<float> const values{1, 2, 3};
  std::vector<std::uint32_t> const indices{1, 5, 700};
  try {
    MemoryCommunicators(2).run([&](Communicator& comm) -> CoTask<> {
      if (number(comm.me()) == 1) {
        send_wrong(comm, bytes);
        co_await comm.receive(Rank{0}, 10000);
        co_return;
      }
      StreamInput<float> const mine{comm.stream(), indices, values, 1000, {}, {}, nullptr};
      auto total = co_await comm::sparse_allgather<float>(comm, mine);
      std::vector<float> all(1000);
      total.write(comm, all);
    });
  } catch (PeerError const& e) {
    return e.what();
  }
  return "none";
}

TEST(InvalidStreams, ErrorNamesSender) {
  Stream stream(Device::host(), 1);
  std::vector<float> const values{1, 2, 3};
  std::vector<std::uint32_t> const indices{1, 5, 700};
  auto const stream_of = [&](std::uint64_t first, std::uint64_t size) {
    return to_host(stream, kernels::encode<float>(stream, {indices, values, first, size, {}}).view());
  };
  EXPECT_EQ(error_of(stream_of(0, 1000)), "none");
  EXPECT_EQ(error_of({1, 2}), "rank 1 sent an invalid sparse stream: it is shorter than a header");
  EXPECT_EQ(error_of(stream_of(0, 999)),
            "rank 1 sent a sparse stream of 999 elements from index 0 on, not of 1000 from index 0 on");
  EXPECT_EQ(error_of(stream_of(1, 1000)),
            "rank 1 sent a sparse stream of 1000 elements from index 1 on, not of 1000 from index 0 on");
  ValueForm const units{StreamValues::kUnits, -30};
  EXPECT_EQ(error_of(to_host(stream, kernels::encode<float>(stream, {indices, values, 0, 1000, units}).view())),
            "rank 1 sent a sparse stream of values in form 4 on grid -30, not in form 0 on grid 0");
  auto wrong = stream_of(0, 1000);
  wrong.back() = 255;
  EXPECT_EQ(error_of(wrong), "rank 1 sent a sparse stream whose positions do not match the header word of their block");
}

// Values so large that sums overflow: the sums wrap, and nothing else is wrong.
TEST(InvalidStreams, SumsMayOverflow64Bits) {
  using T = std::int64_t;
  constexpr T kMost = std::numeric_limits<T>::max();
  std::vector<std::uint32_t> indices(1000);
  std::iota(indices.begin(), indices.end(), 0U);
  for (std::size_t const count : {3U, 300U, 1000U}) {
    std::vector<Vector<T>> vectors(3);
    for (auto& v : vectors) {
      v.indices.assign(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count));
      v.values.assign(count, kMost);
      v.residual.assign(1000, kMost);
    }
    for (auto const& algorithm : all_algorithms<T>()) {
      MemoryCommunicators communicators(3);
      auto const got = sums<T>(communicators, vectors, 1000, {StreamValues::kUnits, kGrid}, algorithm);
      EXPECT_TRUE(!algorithm.keeps_all || got[0] == kMost - 2);  // 3 (2^63 - 1) - 2^64
    }
  }
}

TEST(UncompressedBytes, TakeSmallerOfSparseAndDense) {
  Stream stream(Device::host(), 1);
  auto const plain_of = [&](std::uint32_t count) {  // elements in the first block, and 10 in the next
    std::vector<std::uint32_t> indices(count + 10);
    std::iota(indices.begin(), indices.end(), 0U);
    for (std::uint32_t i = 0; i < 10; ++i) indices[count + i] = static_cast<std::uint32_t>(kernels::kStreamBlock) + i;
    std::vector<float> const values(indices.size(), 1);
    auto const bytes = kernels::encode<float>(stream, {indices, values, 0, kernels::kStreamBlock + 100, {}});
    return comm::uncompressed_bytes(kernels::StreamView(bytes));
  };
  EXPECT_EQ(plain_of(0), 80U);
  EXPECT_EQ(plain_of(300), 80U + 2400);
  EXPECT_EQ(plain_of(40000), 80U + 4 * kernels::kStreamBlock);
  EXPECT_EQ(plain_of(65530), 80U + 4 * kernels::kStreamBlock);  // dense
}

}  // namespace
}  // namespace gpups::test::sparse_algorithms_test
