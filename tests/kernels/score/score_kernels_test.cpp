// SPDX-License-Identifier: Apache-2.0
// Dot products and distances of scoring at sizes that are no multiples of a tile, compared with loops in double; and
// the self-adversarial loss.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "kernels/score/pair_rows.hpp"
#include "kernels/score/pair_rows_device.hpp"
#include "kernels/score/triple_math.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test::score_kernels_test {
namespace {

using namespace kernels;

Matrix<float> random_matrix(std::size_t rows, std::size_t dim, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  Matrix<float> matrix(Device::host(), rows, dim);
  for (float& x : matrix.view().flat()) x = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (float& x : matrix.row(i)) x = uniform(random);
  }
  return matrix;
}

std::vector<std::uint32_t> random_index(std::size_t count, std::size_t rows) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> index(count);
  for (auto& i : index) i = static_cast<std::uint32_t>(random() % rows);
  return index;
}

struct Size {
  std::size_t n, m, dim;
};
// In each dimension some sizes are no multiples of the tiles of the host and of GPUs.
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (std::size_t n : {0, 1, 7, 8, 61, 130}) {
    for (std::size_t m : {1, 15, 33, 300}) {
      for (std::size_t dim : {1, 5, 16, 18, 64, 100}) all.push_back({n, m, dim});
    }
  }
  return all;
}

class Products : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(All, Products, kDevices, device_name);

TEST_P(Products, DotRowsComputesAllDotProducts) {
  Stream stream(GetParam(), 2);
  for (auto const [n, m, dim] : sizes()) {
    SCOPED_TRACE(fmt::format("n = {}, m = {}, dim = {}", n, m, dim));
    Matrix<float> const left = random_matrix(n, dim, 1), right = random_matrix(50, dim, 2);
    auto const index = random_index(2 * m, 50);
    Matrix<float> const out(stream.device(), n, m);
    auto const left_there = moved(stream, stream.device(), left.view());
    auto const right_there = moved(stream, stream.device(), right.view());
    auto const index_there = to_device(stream, index);
    dot_rows(stream, {.left = left_there, .right = {right_there, index_there.data(), 2}, .out = out});
    auto const got = moved(stream, Device::host(), out.view());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < m; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < dim; ++k) sum += double{left.row(i)[k]} * right.row(index[2 * j])[k];
        ASSERT_NEAR(got.row(i)[j], sum, 1e-5) << i << ", " << j;
      }
    }
  }
}

double distance(Algebra algebra, std::span<float const> a, std::span<float const> b) {
  double sum = 0;
  std::size_t const half = a.size() / 2;
  for (std::size_t k = 0; k < (algebra == Algebra::kRotation ? half : a.size()); ++k) {
    double const d = double{a[k]} - b[k];
    if (algebra == Algebra::kTranslationL1) sum += std::abs(d);
    if (algebra == Algebra::kTranslationL2) sum += d * d;
    if (algebra == Algebra::kRotation) sum += std::hypot(d, double{a[half + k]} - b[half + k]);
  }
  return algebra == Algebra::kTranslationL2 ? std::sqrt(sum) : sum;
}

TEST_P(Products, DistanceRowsComputesMarginMinusDistance) {
  Stream stream(GetParam(), 2);
  for (Algebra algebra : {Algebra::kTranslationL1, Algebra::kTranslationL2, Algebra::kRotation}) {
    for (auto const [n, m, dim] : sizes()) {
      if (algebra == Algebra::kRotation && dim % 2 != 0) continue;
      SCOPED_TRACE(fmt::format("algebra {}, n = {}, m = {}, dim = {}", static_cast<int>(algebra), n, m, dim));
      Matrix<float> const left = random_matrix(n, dim, 1);
      Matrix<float> right = random_matrix(m, dim, 2);
      // The distance of this pair is 0.
      if (n > 0) std::copy(left.row(0).begin(), left.row(0).end(), right.row(m - 1).begin());
      Matrix<float> const out(stream.device(), n, m), one(stream.device(), n, 1);
      auto const left_there = moved(stream, stream.device(), left.view());
      auto const right_there = moved(stream, stream.device(), right.view());
      distance_rows(stream, {.algebra = algebra, .margin = 3, .left = left_there, .right = {right_there}, .out = out});
      auto const got = moved(stream, Device::host(), out.view());
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < m; ++j) {
          ASSERT_NEAR(got.row(i)[j], 3 - distance(algebra, left.row(i), right.row(j)), 5e-5) << i << ", " << j;
        }
      }
      if (n > 0) {
        EXPECT_EQ(got.row(0)[m - 1], 3.0F);
      }
      // The bits of a pair's distance are the same if it is computed alone.
      distance_rows(stream, {.algebra = algebra,
                             .margin = 3,
                             .left = left_there,
                             .right = {right_there.view().slice(m / 2, 1)},
                             .out = one});
      auto const alone = moved(stream, Device::host(), one.view());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(alone.row(i)[0], got.row(i)[m / 2]) << i;
    }
  }
}

// The bits of a dot product are the same if it is computed alone or with others.
TEST_P(Products, DotRowsBitsDependOnlyOnTheTwoRows) {
  Stream stream(GetParam(), 2);
  for (auto const [n, m, dim] : sizes()) {
    SCOPED_TRACE(fmt::format("n = {}, m = {}, dim = {}", n, m, dim));
    auto const left = moved(stream, stream.device(), random_matrix(n, dim, 1).view());
    auto const right = moved(stream, stream.device(), random_matrix(m, dim, 2).view());
    Matrix<float> const out(stream.device(), n, m), row(stream.device(), 1, m), column(stream.device(), n, 1);
    dot_rows(stream, {.left = left, .right = {right}, .out = out});
    auto const all = moved(stream, Device::host(), out.view());
    for (std::size_t i = 0; i < n; i += 3) {
      dot_rows(stream, {.left = left.view().slice(i, 1), .right = {right}, .out = row});
      auto const one = moved(stream, Device::host(), row.view());
      for (std::size_t j = 0; j < m; ++j) ASSERT_EQ(one.row(0)[j], all.row(i)[j]) << i << ", " << j;
    }
    for (std::size_t j = 0; j < m; j += 25) {
      dot_rows(stream, {.left = left, .right = {right.view().slice(j, 1)}, .out = column});
      auto const one = moved(stream, Device::host(), column.view());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(one.row(i)[0], all.row(i)[j]) << i << ", " << j;
    }
  }
}

// Does the work of the threads of a GPU block, one thread after the other between two barriers.
template <class Pair, class Rows>
void pair_tile_in_turns(Pair pair, Rows const& g, std::size_t first_left, std::size_t first_right) {
  using Thread = PairTileThread<Pair>;
  std::size_t const n = g.out.rows(), m = g.out.columns(), dim = g.left.columns(), count = Thread::count(dim);
  std::size_t const left_rows = std::min(n - first_left, kPairTile), right_rows = std::min(m - first_right, kPairTile);
  std::vector<Thread> threads;
  for (unsigned t = 0; t < kPairThreads; ++t) threads.emplace_back(pair, t, dim);
  PairStage stage;
  for (std::size_t k = 0; k < count; k += Thread::kDepth) {
    for (float& x : std::span(&stage.left[0][0], sizeof stage / sizeof(float))) x = std::nanf("");
    for (auto& thread : threads) thread.load({g.left}, first_left, left_rows, g.right, first_right, right_rows, k);
    for (auto& thread : threads) thread.put(stage);
    for (auto& thread : threads) thread.add(stage, std::min(count - k, Thread::kDepth));
  }
  for (auto& thread : threads) thread.write(g.out, first_left, first_right);
}

// Compares tiles with run(stream, arguments), which computes the same on the host.
template <class Rows, class Pair, class Run>
void expect_tiles(Rows g, Pair pair, Run run) {
  Stream stream(Device::host(), 1);
  for (auto const [n, m, dim] : sizes()) {
    if (dim % Pair::kParts != 0) continue;
    Matrix<float> const left = random_matrix(n, dim, 1), right = random_matrix(50, dim, 2);
    auto const index = random_index(2 * m, 50);
    // Unaligned rows; the memory between them must not change.
    std::vector<float> wanted(n * (m + 3) + 1, 7.0F), got = wanted;
    g.left = left, g.right = {right, index.data(), 2}, g.out = {wanted.data() + 1, n, m, m + 3};
    run(stream, g);
    g.out = {got.data() + 1, n, m, m + 3};
    for (std::size_t i = 0; i < n; i += kPairTile) {
      for (std::size_t j = 0; j < m; j += kPairTile) pair_tile_in_turns(pair, g, i, j);
    }
    for (std::size_t e = 0; e < got.size(); ++e) {
      ASSERT_NEAR(got[e], wanted[e], 3e-5) << "n = " << n << ", m = " << m << ", dim = " << dim << ", at " << e;
    }
  }
}

TEST(PairTiles, ProductsMatchTheHost) { expect_tiles(DotRows{}, DotPair{}, dot_rows); }

TEST(PairTiles, DistancesMatchTheHost) {
  expect_tiles(DistanceRows{.algebra = Algebra::kTranslationL1, .margin = 2}, DistancePair<TranslationL1>{2},
               distance_rows);
  expect_tiles(DistanceRows{.algebra = Algebra::kTranslationL2, .margin = 2}, DistancePair<TranslationL2>{2},
               distance_rows);
  expect_tiles(DistanceRows{.algebra = Algebra::kRotation, .margin = 2}, DistancePair<RotationModuli>{2},
               distance_rows);
}

// The true answer has no weight even if its score is far above the others.
TEST(SelfAdversarialLoss, IgnoresTrueAnswerAmongNegatives) {
  std::uint32_t const rows[] = {7, 1, 2}, answer = 7;
  float scores[] = {30, 10, 0}, alone[] = {10, 0};
  float const loss = self_adversarial(HostLanes{}, 5, scores, 3, rows, answer).loss;
  EXPECT_EQ(loss, self_adversarial(HostLanes{}, 5, alone, 2, rows + 1, answer).loss);
  EXPECT_NEAR(loss, 10, 1e-3);  // the negative with score 10 has nearly all the weight
  EXPECT_EQ(scores[0], 0);
  EXPECT_EQ(scores[1], alone[0]);
  EXPECT_EQ(scores[2], alone[1]);
}

TEST(SelfAdversarialLoss, IsZeroIfAllNegativesAreTheAnswer) {
  std::uint32_t const rows[] = {7, 7};
  float scores[] = {3, 3};
  EXPECT_EQ(self_adversarial(HostLanes{}, 1, scores, 2, rows, 7).loss, 0);
  EXPECT_EQ(scores[0], 0);
}

}  // namespace
}  // namespace gpups::test::score_kernels_test
