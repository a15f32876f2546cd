// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/bisect.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/base/random.hpp"
#include "trainer/placement/bisection.hpp"
#include "trainer/placement/coarsen.hpp"

namespace gpups::trainer {
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
