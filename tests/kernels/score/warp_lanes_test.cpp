// SPDX-License-Identifier: Apache-2.0
// An emulated team of a GPU warp gives the same bits as a team of the host, and the emulation finds code that would
// hang a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/score/distance_triple.hpp"
#include "kernels/score/matrix_triple.hpp"
#include "tests/kernels/score/warp_emulator.hpp"

namespace gpups::test::warp_lanes_test {
namespace {

using kernels::HostLanes;

constexpr std::size_t kMost = 150;

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> values(n);
  for (float& x : values) x = normal(random);
  return values;
}

std::vector<std::uint32_t> bits(std::vector<float> const& values) {
  std::vector<std::uint32_t> words;
  for (float x : values) words.push_back(std::bit_cast<std::uint32_t>(x));
  return words;
}

// Expects that f(n, lanes) returns the same bits for the host's lanes and for each of the 16 lanes of an emulated team,
// for all n < kMost.
template <class F>
void expect_same_bits(F f) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    emulate_rows(seed, kMost, [&](std::size_t n, EmulatedLanes lanes) {
      auto const want = f(n, HostLanes{}), got = f(n, lanes);
      if (std::memcmp(&want, &got, sizeof want) != 0) ADD_FAILURE() << "n = " << n << ", lane " << lanes.lane;
    });
  }
}

TEST(WarpLanes, SumsHaveHostBits) {
  std::vector<float> const x = random_floats(kMost, 1);
  expect_same_bits([&](std::size_t n, auto lanes) { return lanes.sum(n, [&](std::size_t j) { return x[j]; }); });
}

TEST(WarpLanes, SumsOfWordsHaveHostBits) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> x(kMost);
  for (auto& word : x) word = random();
  expect_same_bits([&](std::size_t n, auto lanes) { return lanes.sum_words(n, [&](std::size_t j) { return x[j]; }); });
}

TEST(WarpLanes, LargestWordReadsEachElementOnce) {
  std::vector<float> const x = random_floats(kMost, 4);
  std::vector<std::uint32_t> const words = bits(x);
  expect_same_bits(
      [&](std::size_t n, auto lanes) { return lanes.max_word(n, [&](std::size_t j) { return words[j]; }); });
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    emulate_rows(seed, kMost, [&](std::size_t n, EmulatedLanes lanes) {
      std::vector<unsigned> calls(n, 0);  // by this lane
      lanes.max_word(n, [&](std::size_t j) { return ++calls[j], words[j]; });
      for (std::size_t j = 0; j < n; ++j) EXPECT_EQ(calls[j], j % kernels::kLanes == lanes.lane ? 1U : 0U);
    });
  }
}

TEST(WarpLanes, LargestIgnoresNanLikeTheHost) {
  std::vector<float> x = random_floats(kMost, 2);
  for (std::size_t j = 0; j < kMost; j += 7) x[j] = std::nanf("");
  for (float least : {-100.0F, 0.0F, 100.0F}) {
    expect_same_bits(
        [&](std::size_t n, auto lanes) { return lanes.max(least, n, [&](std::size_t j) { return x[j]; }); });
  }
}

TEST(WarpLanes, EachVisitsEveryElementOnce) {
  for (std::size_t n = 0; n < kMost; ++n) {
    std::vector<int> visits(2 * kMost, 0), firsts(2, 0);
    emulate_rows(n, 2, [&](std::size_t i, EmulatedLanes lanes) {
      lanes.each(n, [&](std::size_t j) { ++visits[i * kMost + j]; });
      if (lanes.first()) ++firsts[i];
    });
    for (std::size_t k = 0; k < visits.size(); ++k) ASSERT_EQ(visits[k], k % kMost < n ? 1 : 0) << n << ", " << k;
    EXPECT_EQ(firsts, std::vector<int>(2, 1));
  }
}

// The body has several exchanges, and lanes read values that others have written to memory.
TEST(WarpLanes, SideLossHasHostBits) {
  std::vector<std::uint32_t> rows(kMost);
  for (std::size_t j = 0; j < kMost; ++j) rows[j] = static_cast<std::uint32_t>(j % 11);
  using Kind = kernels::Loss::Kind;
  for (kernels::Loss const loss : {kernels::Loss{Kind::kLogistic}, {Kind::kSoftmax}, {Kind::kSelfAdversarial, 2.0F}}) {
    std::vector<std::vector<float>> host(kMost), device(kMost);
    std::vector<kernels::SideLoss> want(kMost), got(kMost);
    for (std::size_t n = 0; n < kMost; ++n) {
      host[n] = device[n] = random_floats(n, 3);
      want[n] = kernels::side_loss(HostLanes{}, loss, 0.5F, host[n].data(), n, rows.data(), 4U);
    }
    emulate_rows(5, kMost, [&](std::size_t n, EmulatedLanes lanes) {
      auto const at = kernels::side_loss(lanes, loss, 0.5F, device[n].data(), n, rows.data(), 4U);
      if (lanes.first()) got[n] = at;
    });
    for (std::size_t n = 0; n < kMost; ++n) {
      EXPECT_EQ(bits(device[n]), bits(host[n])) << n;
      EXPECT_EQ(bits({got[n].loss, got[n].slope}), bits({want[n].loss, want[n].slope})) << n;
    }
  }
}

// Compares queries and gradients of one triple between an emulated team and the host.
template <class Triple>
void expect_same_triple(std::size_t dim, std::size_t relation_dim) {
  auto const make = [&](auto lanes, Matrix<float> const& sources, Matrix<float> const& relation) {
    std::vector<float> const s = random_floats(dim, 1), r = random_floats(relation_dim, 2), o = random_floats(dim, 3);
    auto const rows = kernels::triple_rows(s.data(), r.data(), o.data(), sources, relation, 0);
    Triple::write_queries(lanes, rows);
    lanes.sync();
    return Triple::finish(lanes, {.l2 = 0.25F, .n3 = 0.125F}, -0.5F, rows);
  };
  Matrix<float> sources[2], relation[2];
  float loss[2];
  for (int i = 0; i < 2; ++i) {
    sources[i] = Matrix<float>(Device::host(), kernels::kSourcesPerTriple, dim);
    relation[i] = Matrix<float>(Device::host(), 1, relation_dim);
    std::vector<float> const before = random_floats(sources[i].view().flat().size(), 4);
    std::copy(before.begin(), before.end(), sources[i].view().data());
  }
  loss[0] = make(HostLanes{}, sources[0], relation[0]);
  emulate_rows(dim, 1, [&](std::size_t, EmulatedLanes lanes) { loss[1] = make(lanes, sources[1], relation[1]); });
  EXPECT_NEAR(loss[1], loss[0], 1e-5 * loss[0]);
  auto const expect_near = [&](View<float> got, View<float> want) {
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-4 * (1 + std::abs(want[k]))) << k;
  };
  expect_near(sources[1].view().flat(), sources[0].view().flat());
  expect_near(relation[1].view().flat(), relation[0].view().flat());
}

// The same for a distance, with the direction that a team writes for one candidate.
template <class Score>
struct OneNegative : kernels::DistanceTriple<Score, float> {
  using Triple = kernels::DistanceTriple<Score, float>;
  template <class Lanes>
  static float finish(Lanes lanes, kernels::Regulariser g, float slope, kernels::TripleRows const& t) {
    float* const direction = t.scratch;
    float const length = Triple::distance(lanes, t.object_query, t.subject, t.dim, direction);
    lanes.sync();
    return Triple::finish(lanes, g, slope, t, [=, dim = t.dim](std::size_t k) {
      auto const at = Triple::N::at(direction, k, Triple::N::count(dim));
      return kernels::QueryPair<typename Triple::N>{kernels::plus(at, length, at), at};
    });
  }
};

TEST(WarpLanes, DistancesMatchTheHost) {
  for (std::size_t dim : {2, 6, 16, 34, 50}) {
    SCOPED_TRACE(dim);
    expect_same_triple<OneNegative<kernels::TranslationL1>>(dim, dim);
    expect_same_triple<OneNegative<kernels::TranslationL2>>(dim, dim);
    expect_same_triple<OneNegative<kernels::RotationModuli>>(dim, dim / 2);
  }
}

TEST(WarpLanes, TriplesMatchTheHost) {
  for (std::size_t dim : {2, 6, 16, 34, 50}) {
    SCOPED_TRACE(dim);
    expect_same_triple<kernels::NumberTriple<kernels::RealNumber<float>>>(dim, dim);
    expect_same_triple<kernels::NumberTriple<kernels::ComplexNumber<float>>>(dim, dim);
    expect_same_triple<kernels::MatrixTriple>(dim, dim * dim);
  }
}

TEST(EmulatedWarp, ShuffleBallotAndMatchExchangeValues) {
  constexpr unsigned kAll = 0xFFFFFFFF, kOdd = 0xAAAAAAAA;
  WarpEmulator(1).run([&](EmulatedWarp warp, unsigned thread) {
    EXPECT_EQ(warp.shuffle(kAll, thread * 10, 7), 70U);
    EXPECT_EQ(warp.shuffle(kAll, thread * 10, 3, 16), thread / 16 * 160 + 30);
    EXPECT_EQ(warp.shuffle_xor(kAll, std::uint64_t{thread} << 40, 5), std::uint64_t{thread ^ 5} << 40);
    EXPECT_EQ(warp.ballot(kAll, thread < 4 || thread == 31), 0x8000000FU);
    EXPECT_EQ(warp.match(kAll, thread % 16), 0x00010001U << thread % 16);
    if (thread % 2 == 1) {
      EXPECT_EQ(warp.ballot(kOdd, true), kOdd);
      EXPECT_EQ(warp.match(kOdd, -1.5F), kOdd);
    }
  });
}

// Without sync() a thread reads the old value of its neighbour for some order of the threads.
TEST(EmulatedWarp, ReportsMissingSyncAsWrongResult) {
  auto const sees_old_values = [](std::uint64_t seed, bool sync) {
    std::vector<int> left(32, 0);
    bool old = false;
    WarpEmulator(seed).run([&](EmulatedWarp warp, unsigned thread) {
      left[thread] = 1;
      if (sync) warp.sync(0xFFFFFFFF);
      old = old || left[(thread + 1) % 32] == 0;
    });
    return old;
  };
  bool shows = false;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_FALSE(sees_old_values(seed, true));
    shows = shows || sees_old_values(seed, false);
  }
  EXPECT_TRUE(shows);
}

std::string error_of(WarpEmulator::Body const& body) {
  try {
    WarpEmulator(1).run(body);
  } catch (std::logic_error const& error) {
    return error.what();
  }
  return "";
}

TEST(EmulatedWarp, ReportsThreadsThatWaitForever) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of([](EmulatedWarp warp, unsigned thread) {
                if (thread != 9) warp.sync(0xFFFFFFFF);
              }),
              testing::AllOf(HasSubstr("8 waits in sync for 0xffffffff"), HasSubstr("9 has ended")));
  EXPECT_THAT(error_of([](EmulatedWarp warp, unsigned thread) {
                thread < 16 ? warp.sync(0xFFFFFFFF) : (void)warp.ballot(0xFFFFFFFF, true);
              }),
              testing::AllOf(HasSubstr("3 waits in sync"), HasSubstr("20 waits in ballot")));
  EXPECT_THAT(error_of([](EmulatedWarp warp, unsigned) { warp.sync(0x1); }),
              HasSubstr("1 waits in sync for 0x00000001"))
      << "the caller is not one of the threads that it waits for";
  EXPECT_THAT(error_of([](EmulatedWarp warp, unsigned thread) {
                if (thread < 16) warp.shuffle(0xFFFF, 1.0F, 20);
              }),
              HasSubstr("reads from thread 20, which is not of 0x0000ffff"));
}

}  // namespace
}  // namespace gpups::test::warp_lanes_test
