// SPDX-License-Identifier: Apache-2.0
// Ranks choose alike, and rank 0 for all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/collective/measure_links.hpp"
#include "comm/collective/selector.hpp"
#include "tests/comm/collective/sum_shapes.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/memory_mesh.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::comm {
namespace {

// Each rank makes `sums` selections, one after the other; returns what each rank took.
std::vector<std::vector<Way const*>> select(std::vector<Selector>& selectors, std::vector<SumShape> const& shapes,
                                            int sums, std::uint64_t seed) {
  std::vector<std::vector<Way const*>> taken(selectors.size());
  test::MemoryMeshes meshes(static_cast<int>(selectors.size()), seed);
  meshes.run([&](Mesh& mesh) -> Task<> {
    auto const me = number(mesh.me());
    for (int i = 0; i < sums; ++i) {
      Selection selection(selectors[me], mesh, shapes[me]);
      taken[me].push_back(co_await selection.way());
      co_await selection.end(std::nullopt);
    }
  });
  return taken;
}

std::vector<Selector> selectors_of(int ranks, std::optional<LinkModel> const& assumed,
                                   std::filesystem::path const& cache = {}) {
  std::vector<Selector> selectors;
  selectors.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) selectors.emplace_back(LinkCache(cache), assumed);
  return selectors;
}

TEST(Selector, AllRanksTakeTheSame) {
  for (int ranks : {2, 3, 4, 7}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      auto selectors = selectors_of(ranks, std::nullopt);
      std::vector<SumShape> shapes;  // ranks have differently many
      for (int r = 0; r < ranks; ++r)
        shapes.push_back(sparse(100000, 100 + 20000 * static_cast<std::uint64_t>(r), ranks));
      auto const taken = select(selectors, shapes, 30, seed);
      for (auto const& of_rank : taken) EXPECT_EQ(of_rank, taken[0]);
      EXPECT_EQ(taken[0].size(), 30U);
    }
  }
}

// What an array has is guessed for each sum.
TEST(Selector, OneGuessOfManyChangesNothing) {
  Selector selector(LinkCache({}), only(&LinkModel::byte_s));
  std::vector<std::string> taken;
  test::MemoryMeshes(1).run([&](Mesh& mesh) -> Task<> {
    for (int i = 0; i < 60; ++i) {
      SumShape shape = dense(1 << 20, 2);
      if (i < 20 && i != 5) shape.given_most /= 2;
      Selection selection(selector, mesh, shape);
      taken.emplace_back((co_await selection.way())->algorithm->about.name);
      co_await selection.end(std::nullopt);
    }
  });
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 20, "sparse_gather"), 20);
  EXPECT_EQ(taken.back(), "direct");
}

TEST(Selector, AssumedLinksAreNotMeasured) {
  auto selectors = selectors_of(2, only(&LinkModel::byte_s));
  auto const taken = select(selectors, {dense(1 << 20, 2), dense(1 << 20, 2)}, 3, 1);
  for (auto const* algorithm : taken[1]) EXPECT_EQ(algorithm, taken[0][0]);
  EXPECT_NE(selectors[0].explain().at(0).find("(assumed)"), std::string::npos);
}

TEST(Selector, SaysWhatTheLinksCostAndWhatWasTaken) {
  auto selectors = selectors_of(2, std::nullopt);
  EXPECT_TRUE(selectors[0].explain().empty());
  select(selectors, {dense(5000, 2), dense(5000, 2)}, 2, 1);
  auto const lines = selectors[0].explain();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("measured in"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("1 sum of 5000 floats"), std::string::npos) << lines[1];
  EXPECT_TRUE(selectors[1].explain().empty());
}

// What a job of so many ranks says of its links.
std::string links_of_job(int ranks, std::filesystem::path const& cache) {
  auto selectors = selectors_of(ranks, std::nullopt, cache);
  select(selectors, std::vector(static_cast<std::size_t>(ranks), dense(5000, ranks)), 1, 1);
  return selectors[0].explain().at(0);
}

TEST(Selector, LaterJobsAtTheSamePlacesTakeWhatWasMeasured) {
  test::TemporaryFolder const folder;
  std::string const first = links_of_job(2, folder.path()), second = links_of_job(2, folder.path());
  EXPECT_NE(first.find("(measured in "), std::string::npos) << first;
  EXPECT_NE(second.find("(from " + folder.path().string()), std::string::npos) << second;
  EXPECT_EQ(first.substr(0, first.find(" (")), second.substr(0, second.find(" (")));
  std::string const other_places = links_of_job(3, folder.path());
  EXPECT_NE(other_places.find("(measured in "), std::string::npos) << other_places;
}

// Rank 0 says `byte`, once; rank 1 makes `sums` selections.
void choose(std::uint8_t byte, int sums) {
  auto selectors = selectors_of(2, only(&LinkModel::byte_s));
  test::MemoryMeshes meshes(2);
  meshes.run([&](Mesh& mesh) -> Task<> {
    if (mesh.me() == Rank{0}) {
      Bytes bytes(Device::host(), 1);
      *bytes.data() = byte;
      mesh.send(Rank{1}, std::move(bytes));
      co_return;
    }
    for (int i = 0; i < sums; ++i) {
      Selection selection(selectors[1], mesh, dense(100, 2));
      EXPECT_EQ(co_await selection.way(), &ways()[1]);
      co_await selection.end(std::nullopt);
    }
  });
}

TEST(Selector, RankZeroCannotChooseWhatThereIsNot) {
  constexpr unsigned kHalves = 3;  // a way that there is, where floats were asked for
  ASSERT_EQ(ways()[kHalves].format, NumberFormat::kHalf);
  for (unsigned const byte : {kWaysMax - 1, 255U, 7U << kWayBits | 1, kHalves}) {
    test::expect_error([&] { choose(static_cast<std::uint8_t>(byte), 1); }, {"chose a way to sum that there is not"});
  }
}

TEST(Selector, AChoiceHoldsForAsManySumsAsRankZeroSays) {
  EXPECT_NO_THROW(choose(1, 1));
  EXPECT_NO_THROW(choose(6U << kWayBits | 1, 64));
  EXPECT_ANY_THROW(choose(6U << kWayBits | 1, 65));  // waits for more
}

TEST(Selector, ShortSumsTellLittleOnceTheyAreSure) {
  constexpr int kSums = 3000;
  auto selectors = selectors_of(2, std::nullopt);
  test::MemoryMeshes meshes(2);
  std::size_t at_first = 0;
  meshes.run([&](Mesh& mesh) -> Task<> {
    for (int i = 0; i < kSums; ++i) {
      Selection selection(selectors[number(mesh.me())], mesh, dense(2000, 2));
      co_await selection.way();
      co_await selection.end(std::nullopt);
      if (i == kSums / 2) at_first = meshes.sent().messages;
    }
  });
  EXPECT_LT(meshes.sent().messages - at_first, kSums / 4U);  // not one each way for each sum
  std::string const line = selectors[0].explain().at(1);
  EXPECT_NE(line.find("sums of 2000 floats"), std::string::npos);
  std::size_t const measured = line.find("(measured");
  EXPECT_NE(line.find("(measured", measured + 1), std::string::npos) << line;  // tries are told of, sum by sum
}

TEST(MeasureLinks, AllCostsArePositiveAndTheSameOnAllRanks) {
  std::vector<LinkModel> models(3);
  test::MemoryMeshes meshes(3);
  meshes.run([&](Mesh& mesh) -> Task<> { models[number(mesh.me())] = co_await measure_links(mesh); });
  for (auto const cost : kLinkCosts) EXPECT_GT(models[0].*cost, 0);
  EXPECT_EQ(models[0], models[1]);
  EXPECT_EQ(models[0], models[2]);
}

}  // namespace
}  // namespace gpups::comm
