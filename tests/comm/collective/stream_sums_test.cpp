// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors over ranks by each algorithm: against a map, the same bits on all ranks, nothing lost, and how
// many bytes they take.
#include "comm/collective/stream_sums.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "comm/peer_lost.hpp"
#include "kernels/wire/encode_stream.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_mesh.hpp"

namespace gpups::test {
namespace {

using comm::Mesh;
using comm::StreamTerms;
using comm::StreamTotal;
using comm::Task;
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
StreamTerms<T> terms(Mesh& mesh, Vector<T>& v, std::uint64_t size, ValueForm form) {
  return {mesh.stream(), v.indices, v.values, size, form, v.residual, nullptr};
}

template <class T>
struct Way {
  char const* name;
  std::function<Task<StreamTotal<T>>(Mesh&, StreamTerms<T>)> run;
  bool keeps_all;  // of the elements, if not all of their values
};
template <class T>
std::vector<Way<T>> ways() {
  auto const few = [](Mesh& mesh, StreamTerms<T> t) { return comm::sum_resparsified<T>(mesh, t, 60); };
  auto const many = [](Mesh& mesh, StreamTerms<T> t) { return comm::sum_resparsified<T>(mesh, t, 1 << 30); };
  return {{"gathering", comm::sum_by_gathering<T>, true},
          {"doubling", comm::sum_by_doubling_sparse<T>, true},
          {"owners", comm::sum_by_owners<T>, true},
          {"resparsified", many, true},
          {"cut", few, false}};
}

template <class T>
double number(T x) {
  return std::is_same_v<T, float> ? static_cast<double>(x) : static_cast<double>(x) * 0x1p-30;
}

// What all ranks get, after checking that they get the same, by entries and by an array.
template <class T>
std::vector<T> sums(MemoryMeshes& meshes, std::vector<Vector<T>>& vectors, std::uint64_t size, ValueForm form,
                    Way<T> const& way) {
  std::vector<std::vector<T>> got(vectors.size(), std::vector<T>(size, T{9}));
  std::size_t done = 0;
  meshes.run([&](Mesh& mesh) -> Task<> {
    auto& mine = vectors[number(mesh.me())];
    auto total = co_await way.run(mesh, terms(mesh, mine, size, form));
    auto& all = got[number(mesh.me())];
    total.write(mesh, all);
    auto const entries = total.entries(mesh);
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
class StreamSums : public testing::Test {};
using Types = testing::Types<float, std::int64_t>;
TYPED_TEST_SUITE(StreamSums, Types);

TYPED_TEST(StreamSums, AreThoseOfAMap) {
  using T = TypeParam;
  Random random(1);
  for (auto const& way : ways<T>()) {
    if (!way.keeps_all) continue;
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (std::uint64_t const size : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{70000}}) {
        for (double const density : {.003, .2, .9}) {
          SCOPED_TRACE(testing::Message() << way.name << ", " << ranks << " ranks, " << size << " at " << density);
          std::vector<Vector<T>> vectors;
          std::map<std::uint32_t, double> want;
          for (int r = 0; r < ranks; ++r) {
            vectors.push_back(vector<T>(random, size, r == 1 ? 1e-9 : density, false));
            auto const& v = vectors.back();
            for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += number(v.values[i]);
          }
          MemoryMeshes meshes(ranks, random());
          auto const got = sums<T>(meshes, vectors, size, {StreamValues::kUnits, kGrid}, way);
          for (std::uint64_t i = 0; i < size; ++i) {
            auto const at = want.find(static_cast<std::uint32_t>(i));
            ASSERT_EQ(number(got[i]), at == want.end() ? 0 : at->second) << "at " << i;
          }
        }
      }
    }
  }
}

// What was given is the sum and what the ranks keep, to the last unit.
TEST(StreamSumsOfUnits, LoseNothing) {
  using T = std::int64_t;
  Random random(2);
  for (auto const& way : ways<T>()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (auto const values : {StreamValues::kHalf, StreamValues::kInt8, StreamValues::kUnits}) {
        SCOPED_TRACE(testing::Message() << way.name << ", " << ranks << " ranks, form " << static_cast<int>(values));
        std::uint64_t const size = 66000;
        std::vector<Vector<T>> vectors;
        std::vector<T> want(size, 0);
        for (int r = 0; r < ranks; ++r) {
          vectors.push_back(vector<T>(random, size, .01, true));
          auto const& v = vectors.back();
          for (std::size_t i = 0; i < v.indices.size(); ++i) want[v.indices[i]] += v.values[i];
        }
        MemoryMeshes meshes(ranks, random());
        auto got = sums<T>(meshes, vectors, size, {values, kGrid}, way);
        std::size_t nonzero = 0, kept = 0;
        for (T const x : got) nonzero += x != 0 ? 1 : 0;
        for (auto const& v : vectors) {
          for (std::uint64_t i = 0; i < size; ++i) {
            got[i] += v.residual[i];
            kept += v.residual[i] != 0 ? 1 : 0;
          }
        }
        EXPECT_TRUE(got == want);
        EXPECT_EQ(kept == 0, values == StreamValues::kUnits && way.keeps_all);
        EXPECT_LE(nonzero, way.keeps_all ? size : 60);
      }
    }
  }
}

TEST(StreamSumsOfFloats, ToOwnersAreTheTermsOfTheirSlices) {
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
    MemoryMeshes(ranks).run([&](Mesh& mesh) -> Task<> {
      auto& mine = vectors[number(mesh.me())];
      auto total =
          co_await comm::send_to_owners<float>(mesh, terms(mesh, mine, size, ValueForm{StreamValues::kFloat, 0}));
      EXPECT_EQ(total.streams().size(), static_cast<std::size_t>(ranks));
      auto const& header = total.streams()[0].header();
      total.write(mesh, View<float>(got).slice(header.first, header.size));
    });
    EXPECT_EQ(got, want);
  }
}

TEST(StreamSumsOfFloats, ByDenseOwnersAreNearAndLoseNothing) {
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
      MemoryMeshes(ranks).run([&](Mesh& mesh) -> Task<> {
        std::size_t const me = number(mesh.me());
        comm::DenseOwners const owners{got[me], {}, format, {.seed = 5, .use = 1}};
        co_await comm::sum_by_dense_owners(mesh, terms(mesh, vectors[me], size, ValueForm{StreamValues::kHalf, 0}),
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
  MemoryMeshes meshes(4);
  meshes.run([&](Mesh& mesh) -> Task<> {
    auto& mine = vectors[number(mesh.me())];
    co_await run(mesh, terms(mesh, mine, kSize, ValueForm{StreamValues::kHalf, 0}));
  });
  return static_cast<double>(meshes.sent().bytes) / 1e6;
}

TEST(StreamSumsBytes, AreFew) {
  EXPECT_LE(megabytes(comm::sum_by_doubling_sparse<float>), 5.85);
  EXPECT_LE(megabytes(comm::sum_by_gathering<float>), 5.95);
  EXPECT_LE(megabytes(comm::sum_by_owners<float>), 7.2);
  EXPECT_LE(megabytes(comm::send_to_owners<float>), 1.49);
  EXPECT_LE(megabytes([](Mesh& mesh, StreamTerms<float> t) { return comm::sum_resparsified<float>(mesh, t, 160'000); }),
            2.98);
}

// The budget decides, not the number of ranks.
TEST(StreamSumsBytes, OfWhatIsCutDoNotGrowWithRanks) {
  constexpr std::uint64_t kSize = 1'000'000;
  constexpr std::size_t kMost = 10'000;
  for (int const ranks : {2, 3, 4, 6, 8}) {
    Random random(6);
    std::vector<Vector<float>> vectors;
    for (int r = 0; r < ranks; ++r) vectors.push_back(vector<float>(random, kSize, .01, false));
    MemoryMeshes meshes(ranks);
    meshes.run([&](Mesh& mesh) -> Task<> {
      auto& mine = vectors[number(mesh.me())];
      co_await comm::sum_resparsified<float>(mesh, terms(mesh, mine, kSize, ValueForm{StreamValues::kHalf, 0}), kMost);
    });
    EXPECT_LE(static_cast<double>(meshes.sent(0).bytes), 2. * kMost * 3.12 * (ranks - 1) / ranks + 100. * ranks);
    EXPECT_LE(meshes.sent(0).messages, static_cast<std::size_t>(ranks - 1) + 3);
  }
}

// Below the checksums of what brings them, streams are checked for all that would lead out of their bytes or their
// range; a changed bit of a value is another value.
TYPED_TEST(StreamSums, ChangedOnTheWayNameTheirSenderOrHaveOtherValues) {
  using T = TypeParam;
  constexpr std::uint64_t kSize = 140000;
  Random random(11);
  for (auto const& way : ways<T>()) {
    std::size_t refused = 0, summed = 0, of_headers = 0;
    for (int trial = 0; trial < 400; ++trial) {
      int const ranks = 2 + trial % 3;
      std::vector<Vector<T>> vectors;
      for (int r = 0; r < ranks; ++r) vectors.push_back(vector<T>(random, kSize, .002, false));
      MemoryMeshes meshes(ranks, static_cast<std::uint64_t>(trial));
      std::size_t const which = trial % 4;
      std::size_t arrived = 0, bit = 0;
      Rank changed{};
      meshes.on_arrival = [&](Rank from, View<std::uint8_t> bytes) {
        if (arrived++ != which || bytes.empty()) return;
        std::size_t const first_bits = 8 * std::min(bytes.size(), sizeof(kernels::StreamHeader) + 16);
        bit = below(random, trial % 2 == 0 ? first_bits : 8 * bytes.size());
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        changed = from;
      };
      try {
        meshes.run([&](Mesh& mesh) -> Task<> {
          auto const values = std::is_same_v<T, float> ? StreamValues::kFloat : StreamValues::kUnits;
          auto total = co_await way.run(mesh, terms(mesh, vectors[number(mesh.me())], kSize, ValueForm{values, kGrid}));
          std::vector<T> all(kSize);
          total.write(mesh, all);
          total.entries(mesh);
        });
        ++summed;
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), changed) << way.name << ", trial " << trial << ": " << error.what();
        ++refused;
        of_headers += bit / 8 < sizeof(kernels::StreamHeader) ? 1 : 0;
      }
    }
    EXPECT_GT(refused, 100U) << way.name;
    EXPECT_GT(of_headers, 50U) << way.name;
    EXPECT_GT(summed, 0U) << way.name;
  }
}

// Wrong streams in the place of what a rank should send.
void send_wrong(Mesh& mesh, std::vector<std::uint8_t> bytes) {
  comm::Bytes message(Device::host(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), message.data());
  mesh.send(Rank{0}, std::move(message));
}

std::string error_of(std::vector<std::uint8_t> const& bytes) {
  std::vector<float> const values{1, 2, 3};
  std::vector<std::uint32_t> const indices{1, 5, 700};
  try {
    MemoryMeshes(2).run([&](Mesh& mesh) -> Task<> {
      if (number(mesh.me()) == 1) {
        send_wrong(mesh, bytes);
        co_await mesh.receive(Rank{0}, 10000);
        co_return;
      }
      StreamTerms<float> const mine{mesh.stream(), indices, values, 1000, {}, {}, nullptr};
      auto total = co_await comm::sum_by_gathering<float>(mesh, mine);
      std::vector<float> all(1000);
      total.write(mesh, all);
    });
  } catch (PeerError const& e) {
    return e.what();
  }
  return "none";
}

TEST(StreamSumsOfWrongStreams, NameTheirSender) {
  Stream stream(Device::host(), 1);
  std::vector<float> const values{1, 2, 3};
  std::vector<std::uint32_t> const indices{1, 5, 700};
  auto const stream_of = [&](std::uint64_t first, std::uint64_t size) {
    return to_host(stream, kernels::encode<float>(stream, {indices, values, first, size, {}}).view());
  };
  EXPECT_EQ(error_of(stream_of(0, 1000)), "none");
  EXPECT_EQ(error_of({1, 2}), "rank 1 sent a sparse stream that is none: it is shorter than a header");
  EXPECT_EQ(error_of(stream_of(0, 999)),
            "rank 1 sent a sparse stream of 999 elements from 0 on, not of 1000 from 0 on");
  EXPECT_EQ(error_of(stream_of(1, 1000)),
            "rank 1 sent a sparse stream of 1000 elements from 1 on, not of 1000 from 0 on");
  ValueForm const units{StreamValues::kUnits, -30};
  EXPECT_EQ(error_of(to_host(stream, kernels::encode<float>(stream, {indices, values, 0, 1000, units}).view())),
            "rank 1 sent a sparse stream of values in form 4 on grid -30, not in form 0 on grid 0");
  auto wrong = stream_of(0, 1000);
  wrong.back() = 255;
  EXPECT_EQ(error_of(wrong), "rank 1 sent a sparse stream in which a block's places are not what its word says");
}

// Units that no gradient can have: a wrong sum, as of any other wrong values.
TEST(StreamSumsOfWrongStreams, MayLeave64Bits) {
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
    for (auto const& way : ways<T>()) {
      MemoryMeshes meshes(3);
      auto const got = sums<T>(meshes, vectors, 1000, {StreamValues::kUnits, kGrid}, way);
      EXPECT_TRUE(!way.keeps_all || got[0] == kMost - 2);  // 3 (2^63 - 1) - 2^64
    }
  }
}

TEST(PlainBytes, AreOfAnIndexAndAFloatOrOfFloatsForAllPlaces) {
  Stream stream(Device::host(), 1);
  auto const plain_of = [&](std::uint32_t count) {  // elements in the first block, and 10 in the next
    std::vector<std::uint32_t> indices(count + 10);
    std::iota(indices.begin(), indices.end(), 0U);
    for (std::uint32_t i = 0; i < 10; ++i) indices[count + i] = static_cast<std::uint32_t>(kernels::kStreamBlock) + i;
    std::vector<float> const values(indices.size(), 1);
    auto const bytes = kernels::encode<float>(stream, {indices, values, 0, kernels::kStreamBlock + 100, {}});
    return comm::plain_bytes(kernels::StreamView(bytes));
  };
  EXPECT_EQ(plain_of(0), 80U);
  EXPECT_EQ(plain_of(300), 80U + 2400);
  EXPECT_EQ(plain_of(40000), 80U + 4 * kernels::kStreamBlock);
  EXPECT_EQ(plain_of(65530), 80U + 4 * kernels::kStreamBlock);  // dense
}

}  // namespace
}  // namespace gpups::test
