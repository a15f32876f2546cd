// SPDX-License-Identifier: Apache-2.0
// Selectors: all ranks make the same selection, each on its own.
#include "comm/collectives/selection/selector.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "comm/collectives/selection/link_costs.hpp"
#include "tests/comm/collectives/allreduce/sum_shapes.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/memory_communicator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::comm::selector_test {
namespace {

std::vector<Selector> selectors_of(std::size_t ranks, std::optional<LinkCosts> const& assumed,
                                   std::filesystem::path const& cache = {}) {
  std::vector<Selector> selectors;
  selectors.reserve(ranks);
  for (std::size_t r = 0; r < ranks; ++r) selectors.emplace_back(LinkCostCache(cache), assumed);
  return selectors;
}

// Each rank makes a selection for each sum, one after the other. Returns the selections of each rank. shapes: by sum
// and rank.
std::vector<std::vector<std::string>> select(std::vector<Selector>& selectors,
                                             std::vector<std::vector<AllreduceShape>> const& shapes,
                                             std::uint64_t seed = 1) {
  std::vector<std::vector<std::string>> taken(selectors.size());
  test::MemoryCommunicators communicators(static_cast<int>(selectors.size()), seed);
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto const me = number(comm.me());
    for (auto const& sum : shapes) taken[me].push_back(name_of(co_await selectors[me].select(comm, sum[me])));
  });
  return taken;
}

// Ranks whose vectors have different numbers of elements, with measured costs.
TEST(Selector, AllRanksSelectTheSame) {
  for (int ranks : {2, 3, 4, 7}) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      auto selectors = selectors_of(static_cast<std::size_t>(ranks), std::nullopt);
      std::vector<std::vector<AllreduceShape>> shapes;
      for (std::uint64_t sum = 0; sum < 30; ++sum) {
        auto& shape = shapes.emplace_back();
        for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(ranks); ++r) {
          std::uint64_t const given = 1 + sum * sum * 100 * ((r + sum) % 5);
          shape.push_back(sparse(2000000, given, ranks));
        }
      }
      auto const taken = select(selectors, shapes, seed);
      for (auto const& of_rank : taken) EXPECT_EQ(of_rank, taken[0]);
      EXPECT_EQ(taken[0].size(), 30U);
    }
  }
}

// The full vector may be on any rank.
TEST(Selector, UsesLargestNonzeroCountOfRanks) {
  for (std::size_t full = 0; full < 3; ++full) {
    auto selectors = selectors_of(3, only(&LinkCosts::byte_s));
    std::vector<AllreduceShape> few(3, sparse(1 << 20, 100, 3)), one_full = few;
    one_full[full].nonzeros_max = 1 << 20;
    auto const taken = select(selectors, {few, one_full, few});
    for (auto const& of_rank : taken) {
      EXPECT_EQ(of_rank[0].substr(0, 6), "sparse");
      EXPECT_EQ(of_rank[1], "reduce_scatter_allgather");
      EXPECT_EQ(of_rank[2], of_rank[0]);  // no sum affects another
    }
  }
}

TEST(Selector, AssumedCostsAreNotMeasured) {
  auto selectors = selectors_of(2, only(&LinkCosts::byte_s));
  auto const taken = select(selectors, std::vector(3, std::vector(2, dense(1 << 20, 2))));
  EXPECT_EQ(taken[0], std::vector<std::string>(3, "reduce_scatter_allgather"));
  EXPECT_EQ(taken[1], taken[0]);
  for (auto const& selector : selectors) {
    EXPECT_NE(selector.explain().at(0).find("(assumed)"), std::string::npos) << selector.explain()[0];
  }
}

// Sums that start while the first one measures costs wait for the costs.
TEST(Selector, SumsMayStartBeforeCostsAreKnown) {
  auto selectors = selectors_of(3, std::nullopt);
  std::vector<std::vector<std::string>> taken(3);
  test::MemoryCommunicators communicators(3);
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto const me = number(comm.me());
    auto const sum = [&](std::uint64_t elements) -> CoTask<> {
      taken[me].push_back(name_of(co_await selectors[me].select(comm, dense(elements, 3))));
    };
    std::vector<CoTask<>> sums;
    for (std::uint64_t const elements : {5000, 6000, 7000}) sums.push_back(sum(elements));
    co_await all(std::move(sums));
  });
  EXPECT_EQ(taken[0].size(), 3U);
  EXPECT_EQ(taken[1], taken[0]);
  EXPECT_EQ(taken[2], taken[0]);
}

TEST(Selector, ExplainsSelections) {
  LinkCosts costs = only(&LinkCosts::byte_s);
  costs.byte_s = 1e-9;
  auto selectors = selectors_of(2, costs);
  EXPECT_TRUE(selectors[0].explain().empty());
  AllreduceShape halves = sparse(100000, 1000, 2);
  halves.format = WireFormat::kHalf;
  std::vector<std::vector<AllreduceShape>> shapes(2, std::vector(2, dense(250000, 2)));
  shapes.push_back(std::vector(2, halves));
  select(selectors, shapes);
  for (auto const& selector : selectors) {
    auto const lines = selector.explain();
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_NE(lines[0].find("links: 1e-09 us a round, 1 GB/s, "), std::string::npos) << lines[0];
    for (char const* part :
         {"1 sum of sparse vectors of 100000 floats, at most 1 % nonzero on a rank, as half or more exactly",
          ", by sparse_allgather as half; modelled sparse_allgather as half ", "reduce_scatter_allgather 0.4 ms"}) {
      EXPECT_NE(lines[1].find(part), std::string::npos) << part << " in " << lines[1];
    }
    EXPECT_NE(lines[2].find(
                  "2 sums of 250000 floats, at most 100 % nonzero on a rank, as float, by reduce_scatter_allgather; "
                  "modelled reduce_scatter_allgather 1 ms"),
              std::string::npos)
        << lines[2];
  }
}

// Runs a job of so many ranks, and returns its line about links.
std::string links_of_job(std::size_t ranks, std::filesystem::path const& cache) {
  auto selectors = selectors_of(ranks, std::nullopt, cache);
  select(selectors, {std::vector(ranks, dense(5000, static_cast<int>(ranks)))});
  auto const lines = selectors[0].explain();
  for (auto const& selector : selectors) EXPECT_EQ(selector.explain().at(1), lines.at(1));
  return lines[0];
}

TEST(Selector, LaterJobsReuseCachedCosts) {
  test::TemporaryFolder const folder;
  std::string const first = links_of_job(2, folder.path()), second = links_of_job(2, folder.path());
  EXPECT_NE(first.find("(measured in "), std::string::npos) << first;
  EXPECT_NE(second.find("(from " + folder.path().string()), std::string::npos) << second;
  EXPECT_EQ(first.substr(0, first.find(" (")), second.substr(0, second.find(" (")));
  std::string const other_places = links_of_job(3, folder.path());
  EXPECT_NE(other_places.find("(measured in "), std::string::npos) << other_places;
}

// Expects an error of rank 1 with these words if rank 0 runs this.
void expect_rejected(std::function<CoTask<>(Communicator&)> const& rank_0, char const* words) {
  auto selectors = selectors_of(2, std::nullopt);
  test::expect_error(
      [&] {
        test::MemoryCommunicators(2).run([&](Communicator& comm) -> CoTask<> {
          if (comm.me() == Rank{0}) return rank_0(comm);
          return [](Selector& selector, Communicator& of) -> CoTask<> { co_await selector.select(of, dense(1000, 2)); }(
                                                              selectors[1], comm);
        });
      },
      {"rank 0 ", words});
}

TEST(Selector, RejectsTooManyNonzeros) {
  expect_rejected([](Communicator& comm) -> CoTask<> { co_await allgather_number(comm, 1001); },
                  "has 1001 nonzero elements of 1000");
}

TEST(Selector, RejectsNonPositiveCosts) {
  for (double const wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    auto const bits = std::bit_cast<std::uint64_t>(wrong);
    expect_rejected(
        [bits](Communicator& comm) -> CoTask<> {
          for (std::uint64_t const number : {std::uint64_t{1000}, std::uint64_t{0}})
            co_await allgather_number(comm, number);
          for (std::size_t i = 0; i < kLinkCostMembers.size(); ++i)
            co_await allgather_number(comm, 0);  // not in the cache
          co_await measure_links(comm);
          for (std::size_t i = 0; i < kLinkCostMembers.size(); ++i) co_await allgather_number(comm, bits);
        },
        "sent link costs that are not positive");
  }
}

TEST(MeasureLinks, AllRanksGetSamePositiveCosts) {
  std::vector<LinkCosts> models(3);
  test::MemoryCommunicators communicators(3);
  communicators.run([&](Communicator& comm) -> CoTask<> { models[number(comm.me())] = co_await measure_links(comm); });
  EXPECT_TRUE(is_possible(models[0]));
  EXPECT_EQ(models[0], models[1]);
  EXPECT_EQ(models[0], models[2]);
}

}  // namespace
}  // namespace gpups::comm::selector_test
