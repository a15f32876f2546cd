// SPDX-License-Identifier: Apache-2.0
// With equal link costs, allreduces with a selected algorithm have the same bits in every run.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/selection/link_cost_cache.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::reproducible_allreduce_test {
namespace {

struct Result {
  std::vector<std::vector<float>> sums;
  std::vector<std::string> explained;
  bool operator==(Result const&) const = default;
};

// Returns rank 0's sums of arrays and sparse vectors, dense and mostly zero. The last bits of sums depend on the order
// in which ranks are added.
Result sum_in(std::vector<Group> const& groups, int repeats) {
  std::mutex mutex;
  Result result;
  run_ranks(groups, [&](Group const& group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    Random random(number(group.rank()) + 1);
    Result mine;
    for (std::size_t const size : {std::size_t{3000}, std::size_t{40000}}) {
      for (std::uint64_t const apart : {1, 10, 300}) {
        std::vector<std::uint32_t> indices;
        std::vector<float> dense(size, 0), values;
        for (std::size_t i = 0; i < size; ++i) {
          if (below(random, apart) != 0) continue;
          indices.push_back(static_cast<std::uint32_t>(i));
          values.push_back(dense[i] = static_cast<float>(uniform(random)) - .3F);
        }
        for (int repeat = 0; repeat < repeats; ++repeat) {
          auto sums = dense;
          group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(sums)));
          auto const of_list =
              group.wait_result(stream, group.begin_allreduce(stream, SparseView{size, indices, values}));
          if (repeat == 0) {
            mine.sums.push_back(sums);
            mine.sums.push_back(to_host(stream, of_list.values.view()));
          }
          EXPECT_EQ(sums, mine.sums.end()[-2]) << repeat;
          EXPECT_EQ(to_host(stream, of_list.values.view()), mine.sums.back()) << repeat;
        }
      }
    }
    for (auto const& line : group.explain_allreduces()) {
      if (!line.starts_with("links: ")) mine.explained.push_back(line.substr(line.find(" of ")));  // without the count
    }
    store.wait_barrier();
    std::lock_guard lock(mutex);
    if (result.sums.empty()) result = mine;
    EXPECT_TRUE(mine == result);  // equal on every rank
  });
  return result;
}

// For any order in which messages arrive.
TEST(ReproducibleAllreduce, SameBitsWithAssumedCosts) {
  for (int const ranks : {2, 3, 4}) {
    Result const first = sum_in(Group::simulated(ranks, {.seed = 0}), 1);
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
      EXPECT_TRUE(sum_in(Group::simulated(ranks, {.seed = seed, .delay_ms_max = 30}), 1) == first) << seed;
    }
  }
}

// The first run measures the costs.
TEST(ReproducibleAllreduce, SameBitsWithCachedCosts) {
  TemporaryFolder const folder;
  Environment const environment(Environment::Variables{{"GPUPS_CACHE_DIR", folder.path().string()}});
  for (int const ranks : {2, 3}) {
    Result const first = sum_in(Group::threads(ranks), 100);
    for (int run = 0; run < 3; ++run) EXPECT_TRUE(sum_in(Group::threads(ranks), 1) == first) << run;
  }
}

// Writes costs into the cache file that a run of three threads has written.
TEST(ReproducibleAllreduce, CachedCostsDecideSelection) {
  TemporaryFolder const folder;
  Environment const environment(Environment::Variables{{"GPUPS_CACHE_DIR", folder.path().string()}});
  sum_in(Group::threads(3), 1);
  std::string key;
  for (auto const& file : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream in(file.path());
    std::getline(in, key);
    std::getline(in, key);
  }
  comm::LinkCostCache const cache(folder.path());
  ASSERT_TRUE(cache.find(key));
  std::vector<Result> results;
  for (auto const slow : {&comm::LinkCosts::round_s, &comm::LinkCosts::byte_s}) {
    comm::LinkCosts costs;
    for (auto const cost : comm::kLinkCostMembers) costs.*cost = 1e-15;
    costs.*slow = 1e-3;
    cache.put(key, costs);
    results.push_back(sum_in(Group::threads(3), 1));
    EXPECT_TRUE(sum_in(Group::threads(3), 1) == results.back());
  }
  EXPECT_NE(results[0].explained, results[1].explained);
  EXPECT_NE(results[0].sums, results[1].sums);  // added in other orders
}

// No algorithm is selected then, and no costs are measured.
TEST(ReproducibleAllreduce, EnvironmentSetsAlgorithm) {
  auto const sum = [](AllreduceOptions const& options) {
    std::vector<float> result;
    run_ranks(Group::threads(3), [&](Group const& group) {
      Store store(group, {.threads = 1});
      auto stream = store.make_stream();
      Random random(number(group.rank()) + 1);
      std::vector<float> values(20000);
      for (float& value : values) value = static_cast<float>(uniform(random)) - .3F;
      group.wait_allreduce(stream, group.begin_allreduce(stream, View<float>(values), options));
      EXPECT_TRUE(group.explain_allreduces().empty());
      if (group.rank() == Rank{0}) result = values;
      store.wait_barrier();
    });
    return result;
  };
  auto const doubled = sum({.algorithm = "recursive_doubling"}),
             direct = sum({.algorithm = "reduce_scatter_allgather"});
  EXPECT_NE(doubled, direct);
  for (auto const& [name, expected] :
       {std::pair("recursive_doubling", doubled), {"reduce_scatter_allgather", direct}}) {
    Environment const environment(Environment::Variables{{"GPUPS_ALLREDUCE_ALGORITHM", name}});
    EXPECT_EQ(sum({}), expected) << name;
    EXPECT_EQ(sum({.format = WireFormat::kHalf}), expected) << name;  // the algorithm does not support half
  }
}

}  // namespace
}  // namespace gpups::test::reproducible_allreduce_test
