// SPDX-License-Identifier: Apache-2.0
// Random walks follow edges with the probabilities of node2vec, and their groups have all pairs within the windows.
#include "trainer/tasks/nodes/random_walks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "trainer/base/random.hpp"

namespace gpups::trainer::random_walks_test {
namespace {

Network network_of(std::uint32_t nodes, std::vector<WeightedEdge> const& edges, bool directed, bool weighted = false) {
  Dictionary names("node");
  for (std::uint32_t n = 0; n < nodes; ++n) names.add("n" + std::to_string(n));
  return {std::move(names), edges, directed, weighted};
}

// A ring in which walks go around, from each node to the next.
Network ring(std::uint32_t nodes) {
  std::vector<WeightedEdge> edges;
  for (std::uint32_t n = 0; n < nodes; ++n) edges.push_back({n, (n + 1) % nodes, 1});
  return network_of(nodes, edges, true);
}

TEST(RandomWalks, StartAtEachNodeAndFollowEdges) {
  Network const network = ring(7);
  WalkSampler const sampler(network, {.walks = 3, .length = 20}, {});
  for (std::uint64_t sample = 0; sample < 21; ++sample) {
    std::vector<std::uint32_t> const walk = sampler.walk(0, sample);
    ASSERT_EQ(walk.size(), 20U);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(walk[i], (sample + i) % 7);
  }
}

TEST(RandomWalks, EndAtNodesWithoutEdges) {
  Network const network = network_of(3, {{0, 1, 1}, {1, 2, 1}}, true);
  WalkSampler const sampler(network, {.length = 50}, {});
  EXPECT_EQ(sampler.walk(0, 0), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(sampler.walk(0, 2), (std::vector<std::uint32_t>{2}));
}

// From 1, with 0 before: 0 is the way back, 2 has an edge from 0, and 3 has none.
TEST(RandomWalks, HaveTheProbabilitiesOfNode2vec) {
  std::vector<WeightedEdge> const edges{{0, 1, 2}, {0, 2, 1}, {1, 2, 3}, {1, 3, 1.5}};
  for (bool const weighted : {false, true}) {
    Network const network = network_of(4, edges, false, weighted);
    std::array<double, 4> const weights = weighted ? std::array{2.0, 0.0, 3.0, 1.5} : std::array{1.0, 0.0, 1.0, 1.0};
    for (auto const& [p, q] : {std::pair(1.0, 1.0), {4.0, 0.5}, {0.25, 4.0}, {0.5, 0.5}}) {
      WalkSampler const sampler(network, {.length = 200, .p = p, .q = q}, {});
      std::array<double, 4> counts{};
      for (std::uint64_t sample = 0; sample < 400; ++sample) {
        std::vector<std::uint32_t> const walk = sampler.walk(2, sample);
        for (std::size_t i = 2; i < walk.size(); ++i) {
          if (walk[i - 2] == 0 && walk[i - 1] == 1) ++counts[walk[i]];
        }
      }
      std::array<double, 4> want{weights[0] / p, 0, weights[2], weights[3] / q};
      double const drawn = counts[0] + counts[2] + counts[3], sum = want[0] + want[2] + want[3];
      ASSERT_GT(drawn, 3000);
      EXPECT_EQ(counts[1], 0);
      for (std::size_t n : {0, 2, 3}) {
        EXPECT_NEAR(counts[n] / drawn, want[n] / sum, 0.03) << n << ": " << p << ", " << q;
      }
    }
  }
}

TEST(RandomWalks, DependOnSeedEpochAndSample) {
  Network const network = network_of(4, {{0, 1, 1}, {0, 2, 1}, {1, 2, 1}, {1, 3, 1}}, false);
  std::set<std::vector<std::uint32_t>> walks;
  for (std::uint64_t seed : {1, 2}) {
    WalkSampler const sampler(network, {.length = 60}, {.seed = seed});
    for (std::int64_t epoch : {0, 1}) {
      for (std::uint64_t sample : {0, 4}) walks.insert(sampler.walk(epoch, sample));  // both from node 0
    }
  }
  EXPECT_EQ(walks.size(), 8U);
}

// Each node of the ring has its walk once, so a pair occurs as often as its distance is in reach.
TEST(RandomWalks, GroupsHaveThePairsOfTheWindows) {
  constexpr std::uint32_t kNodes = 100, kLength = 70, kWindow = 6;
  Network const network = ring(kNodes);
  WalkSampler const sampler(network, {.walks = 1, .length = kLength},
                            {.window = kWindow, .negatives = 2, .shared_negatives = 2, .subsample = 0});
  Batch batch{.samples = std::vector<std::uint64_t>(kNodes)};
  std::iota(batch.samples.begin(), batch.samples.end(), 0U);
  SkipGramGroups const groups = sampler.groups(batch);
  EXPECT_EQ(groups.words.size(), kNodes * kLength);
  EXPECT_EQ(groups.word_offsets.size(), 1 + kNodes * 3);
  std::map<Key, std::uint32_t> numbers;
  for (std::uint32_t n = 0; n < kNodes; ++n) numbers[network.nodes().keys()[n]] = n;
  std::map<int, double> distances;
  for (std::size_t g = 0; g + 1 < groups.word_offsets.size(); ++g) {
    for (std::uint32_t w = groups.word_offsets[g]; w < groups.word_offsets[g + 1]; ++w) {
      auto const [first, own, end] = groups.windows[w];
      std::uint32_t const word = numbers.at(groups.words[w]);
      for (std::uint32_t c = first; c < end; ++c) {
        std::uint32_t const context = numbers.at(groups.contexts[groups.context_offsets[g] + c]);
        int const distance = static_cast<int>(c) - static_cast<int>(own);
        EXPECT_EQ((word + kNodes + static_cast<std::uint32_t>(distance + 0)) % kNodes, context);
        ++distances[distance];
      }
    }
  }
  ASSERT_EQ(distances.size(), 2 * kWindow + 1);
  for (int d = 1; d <= static_cast<int>(kWindow); ++d) {
    double const want = kNodes * (kLength - d) * (1 - (d - 1.0) / kWindow);
    EXPECT_NEAR(distances[d], want, 5 * std::sqrt(want)) << d;
    EXPECT_NEAR(distances[-d], want, 5 * std::sqrt(want)) << d;
  }
}

}  // namespace
}  // namespace gpups::trainer::random_walks_test
