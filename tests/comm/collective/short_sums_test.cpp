// SPDX-License-Identifier: Apache-2.0
// Short arrays of floats, which go to every rank at once.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/collective/dense.hpp"
#include "comm/collective/header.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_mesh.hpp"

namespace gpups::test {
namespace {

using comm::Mesh;
using comm::Task;
using Floats = std::vector<float>;

Floats floats_of(std::uint32_t rank, std::size_t n) {
  Random random(rank + 1);
  Floats values(n);
  for (auto& value : values) value = 1.F / static_cast<float>(1 + below(random, 1000));  // sums are rounded
  return values;
}

// In the order of the ranks.
Floats sums_of(int ranks, std::size_t n) {
  Floats sums = floats_of(0, n);
  for (std::uint32_t rank = 1; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    Floats const terms = floats_of(rank, n);
    for (std::size_t i = 0; i < n; ++i) sums[i] += terms[i];
  }
  return sums;
}

struct Arrays {
  Array<float> terms, sums;
};

// Runs all ranks over these meshes, whose messages arrive as their seed decides; checks what each gets.
void run(MemoryMeshes& meshes, int ranks, std::size_t n, bool in_place) {
  Floats const expected = sums_of(ranks, n);
  meshes.run([&](Mesh& mesh) -> Task<> {
    auto const arrays = std::make_shared<Arrays>();
    Floats const mine = floats_of(number(mesh.me()), n);
    arrays->terms = to_device(mesh.stream(), mine);
    arrays->sums = Array<float>(mesh.stream().device(), n);
    View<float> const sums = in_place ? arrays->terms.view() : arrays->sums.view();
    comm::DenseSum const of{.values = sums, .terms = arrays->terms, .keep = arrays};
    co_await comm::sum_at_once(mesh, of);
    EXPECT_EQ(to_host(mesh.stream(), sums), expected) << ranks << " ranks, " << n;
    if (!in_place) {
      EXPECT_EQ(to_host(mesh.stream(), arrays->terms.view()), mine);
    }
  });
}

TEST(ShortSums, AreThoseInTheOrderOfTheRanks) {
  for (int ranks = 1; ranks <= 19; ++ranks) {
    for (std::size_t const n : {0, 1, 7, 200}) {
      for (bool const in_place : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          MemoryMeshes meshes(ranks, seed);
          run(meshes, ranks, n, in_place);
        }
      }
    }
  }
}

TEST(ShortSums, TakeOneMessageToEachRank) {
  MemoryMeshes meshes(4);
  run(meshes, 4, 100, true);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(meshes.sent(rank).messages, 3U);
    EXPECT_EQ(meshes.sent(rank).bytes, 3U * 400);
  }
}

TEST(ShortSums, AreOfArraysThatFitIntoAHeaderForEachRank) {
  EXPECT_TRUE(comm::is_short(2, 4096));
  EXPECT_FALSE(comm::is_short(2, 4097));
  EXPECT_TRUE(comm::is_short(17, 1024));
  EXPECT_FALSE(comm::is_short(18, 1024));
}

}  // namespace
}  // namespace gpups::test
