// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/bisect.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "trainer/base/random.hpp"
#include "trainer/placement/bisection.hpp"

namespace gpups::trainer {

Coarsened coarsen(WeightedGraph const& graph, NodeSize const& size_max, std::uint64_t seed) {
  std::uint32_t const free = graph.nodes();  // of a node without a cluster
  std::vector<std::uint32_t> cluster(graph.nodes(), free);
  std::uint32_t clusters = 0;
  for (std::uint32_t const node : shuffled_numbers(graph.nodes(), seed)) {
    if (cluster[node] != free) continue;
    NodeSize const& size = graph.sizes[node];
    std::uint32_t partner = node;
    double best = 0;
    for (auto const& [to, weight] : graph.of(node)) {
      NodeSize const& other = graph.sizes[to];
      if (cluster[to] != free || size[0] + other[0] > size_max[0] || size[1] + other[1] > size_max[1]) continue;
      // Without the size, heavy nodes would get heavier and heavier, and sides could not be balanced.
      double const rating = weight / (other[0] * (other[1] + 1));
      if (rating > best) best = rating, partner = to;
    }
    cluster[node] = cluster[partner] = clusters++;
  }
  return {contract(graph, cluster, clusters), std::move(cluster)};
}

std::vector<std::uint32_t> shuffled_numbers(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  RandomBits const bits(seed, std::uint64_t{0x6f72646572});  // "order"
  for (std::uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i, bits(i))]);
  return order;
}

namespace {

constexpr std::uint32_t kSmall = 150;  // nodes of a graph that is not made smaller
constexpr double kShrinks = 0.95;      // nor is a graph if it would keep this share of its nodes
constexpr double kNodesInASide = 40;   // a node has at most this fraction of a side
constexpr int kTries = 10;
constexpr int kCycles = 4;

std::vector<std::uint8_t> cut_small(WeightedGraph const& graph, BisectOptions const& options) {
  Bisection bisection(graph, options);
  std::vector<std::uint8_t> best(graph.nodes());
  double least = std::numeric_limits<double>::infinity();
  for (int t = 0; t < kTries; ++t) {
    bisection.grow(shuffled_numbers(graph.nodes(), random_bits(options.seed, t)));
    bisection.improve();
    if (bisection.badness() < least) least = bisection.badness(), best = bisection.sides();
  }
  return best;
}

std::vector<std::uint8_t> cut(WeightedGraph const& graph, NodeSize const& size_max, BisectOptions const& options) {
  if (graph.nodes() <= kSmall) return cut_small(graph, options);
  Coarsened const smaller = coarsen(graph, size_max, random_bits(options.seed, graph.nodes()));
  if (smaller.graph.nodes() > kShrinks * graph.nodes()) return cut_small(graph, options);
  std::vector<std::uint8_t> const coarse_side = cut(smaller.graph, size_max, options);
  std::vector<std::uint8_t> side(graph.nodes());
  for (std::uint32_t n = 0; n < graph.nodes(); ++n) side[n] = coarse_side[smaller.node_of[n]];
  Bisection bisection(graph, options);
  bisection.set_sides(std::move(side));
  bisection.improve();
  return bisection.sides();
}

}  // namespace

std::vector<std::uint8_t> bisect(WeightedGraph const& graph, BisectOptions const& options) {
  NodeSize size_max{};
  for (NodeSize const& size : graph.sizes) size_max[0] += size[0], size_max[1] += size[1];
  for (double& size : size_max) size *= std::min(options.share, 1 - options.share) / kNodesInASide;
  std::vector<std::uint8_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    BisectOptions once = options;
    once.seed = random_bits(options.seed, cycle);
    Bisection bisection(graph, options);
    bisection.set_sides(cut(graph, size_max, once));
    if (bisection.badness() < least) least = bisection.badness(), best = bisection.sides();
  }
  return best;
}

}  // namespace gpups::trainer
