// SPDX-License-Identifier: Apache-2.0
// Partitions are balanced, do not depend on anything but their arguments, and find planted communities.
#include "trainer/placement/partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/placement/planted_graph.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::trainer::partition_test {
namespace {

using test::PlantedGraph;

std::vector<double> rows_of_parts(Partition const& partition) {
  std::vector<double> rows(partition.parts);
  for (std::uint16_t const part : partition.of_row) rows[part] += 1;
  return rows;
}

std::vector<double> samples_of_parts(Partition const& partition) {
  std::vector<double> samples(partition.parts);
  for (std::uint16_t const part : partition.of_sample) samples[part] += 1;
  return samples;
}

double largest(std::vector<double> const& sizes) { return *std::max_element(sizes.begin(), sizes.end()); }

TEST(Partition, FindsPlantedCommunities) {
  for (std::uint64_t seed : {1, 2, 3}) {
    PlantedGraph const planted{.communities = 4, .seed = seed};
    // Of the mixed samples, 3 in 4 read rows of two communities, and one of the two rows is remote: 0.0375 of all.
    EXPECT_LT(Placement(planted.with_keys(), {.parts = 4, .seed = seed}).remote_share(), 0.06);
  }
}

TEST(Partition, EndsAfterASignal) {
  Bigraph const graph = PlantedGraph{.communities = 4, .seed = 1}.make();
  StopSignals const signals;
  std::raise(SIGTERM);
  test::expect_error([&] { (void)partition(graph, {.parts = 4}); }, {"stopped by a signal while dividing the rows"});
}

TEST(Partition, IsBalanced) {
  for (std::uint32_t communities : {1, 3, 7}) {
    for (std::uint32_t parts : {2, 3, 5, 8}) {
      PlantedGraph const planted{.communities = communities, .rows_each = 840 / communities, .samples = 20000};
      Bigraph const graph = planted.make();
      Partition const p = partition(graph, {.parts = parts, .slack = 0.1});
      double const rows = 840.0 / parts, samples = 20000.0 / parts;
      EXPECT_LE(largest(rows_of_parts(p)), 1.1 * rows + 1) << communities << ", " << parts;
      // The load counts shares of samples, so it differs a little from their number.
      EXPECT_LE(largest(samples_of_parts(p)), 1.2 * samples) << communities << ", " << parts;
    }
  }
}

// Samples read the rows of community 0 ten times as often as others, so its rows must not fill one part.
TEST(Partition, BalancesLoadAndRows) {
  Bigraph graph{.rows = 400};
  for (std::uint64_t i = 0; i < 8000; ++i) {
    std::uint64_t const first = below(13, random_bits(1, i, 0)) < 10 ? 0 : 1 + below(3, random_bits(1, i, 1));
    std::uint32_t const read[] = {static_cast<std::uint32_t>(100 * first + below(100, random_bits(1, i, 2))),
                                  static_cast<std::uint32_t>(100 * first + below(100, random_bits(1, i, 3)))};
    graph.add(read);
  }
  Partition const p = partition(graph, {.parts = 4, .slack = 0.1});
  EXPECT_LE(largest(rows_of_parts(p)), 1.1 * 100 + 1);
  EXPECT_LE(largest(samples_of_parts(p)), 1.3 * 2000);
}

TEST(Partition, DependsOnItsArgumentsOnly) {
  Bigraph const graph = PlantedGraph{}.make();
  Partition const first = partition(graph, {.parts = 6, .seed = 5}), again = partition(graph, {.parts = 6, .seed = 5});
  EXPECT_EQ(first.of_row, again.of_row);
  EXPECT_EQ(first.of_sample, again.of_sample);
}

// Ranks own ranges of parts, so ranges must belong together.
TEST(Partition, NeighbouringPartsBelongTogether) {
  PlantedGraph const planted{.communities = 2, .rows_each = 200, .mixed = 4};
  Placement const placement(planted.with_keys(), {.parts = 8});
  EXPECT_GT(placement.remote_share(), 0.2);  // a community has four parts
  EXPECT_LT(placement.remote_share(2), 0.04);
}

TEST(Partition, WorksWithFewRows) {
  Bigraph graph{.rows = 3};
  std::uint32_t const pair[] = {0, 1}, same[] = {1, 1}, one[] = {2};
  graph.add(pair), graph.add(same), graph.add(one);
  for (std::uint32_t parts : {1, 2, 8}) {
    Partition const p = partition(graph, {.parts = parts});
    for (std::uint16_t const part : p.of_row) EXPECT_LT(part, parts);
    for (std::uint16_t const part : p.of_sample) EXPECT_LT(part, parts);
  }
  EXPECT_TRUE(partition(Bigraph{}, {.parts = 2}).of_row.empty());
}

// A row that every sample reads has little influence: each rank reads it once in each step, whoever owns it.
TEST(RowWeights, FrequentRowsCostLittle) {
  Bigraph graph{.rows = 101};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    std::uint32_t const read[] = {i % 100, 100};
    graph.add(read);
  }
  RowWeights const weights = row_weights(graph, 50);
  EXPECT_NEAR(weights.cost[100], 1.0 / 50, 1e-6);
  EXPECT_NEAR(weights.cost[0], (1 - std::exp(-0.5)) / 0.5, 1e-6);
  double sum = 0;
  for (float const load : weights.load) sum += load;
  EXPECT_NEAR(sum, 1000, 1e-2);
}

}  // namespace
}  // namespace gpups::trainer::partition_test
