// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/bisection.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "trainer/base/long_loop.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer {

namespace {

constexpr int kRounds = 10;  // of moves
constexpr std::string_view kPartitioning = "dividing the rows among the ranks";
constexpr std::size_t kFutileMoves = 300;  // a round ends after as many moves without a better cut

}  // namespace

Bisection::Bisection(WeightedGraph const& graph, BisectOptions const& options)
    : graph_(graph), options_(options), side_(graph.nodes()), gain_(graph.nodes()) {
  for (NodeSize const& size : graph.sizes) total_[0] += size[0], total_[1] += size[1];
  for (auto const& edge : graph.edges) weight_ += edge.weight / 2;
  set_sides(side_);
}

void Bisection::set_sides(std::vector<std::uint8_t> sides) {
  side_ = std::move(sides);
  size_of_1_ = {};
  cut_ = 0;
  for (std::uint32_t n = 0; n < graph_.nodes(); ++n) {
    gain_[n] = 0;
    for (auto const& [to, weight] : graph_.of(n)) {
      gain_[n] += side_[to] == side_[n] ? -weight : weight;
      if (side_[to] != side_[n]) cut_ += weight / 2;
    }
    if (side_[n] == 1) size_of_1_[0] += graph_.sizes[n][0], size_of_1_[1] += graph_.sizes[n][1];
  }
}

double Bisection::excess(NodeSize const& size_of_1) const {
  double sum = 0;  // not the maximum: a move of one node rarely makes both sizes better
  for (std::size_t k = 0; k < size_of_1.size(); ++k) {
    double const share = total_[k] > 0 ? size_of_1[k] / total_[k] : options_.share;
    double const larger = std::max(share / options_.share, (1 - share) / (1 - options_.share));
    sum += std::max(0.0, larger - 1 - options_.slack);
  }
  return sum;
}

NodeSize Bisection::size_after(std::uint32_t node) const {
  double const sign = side_[node] == 0 ? 1 : -1;
  return {size_of_1_[0] + sign * graph_.sizes[node][0], size_of_1_[1] + sign * graph_.sizes[node][1]};
}

bool Bisection::is_allowed(std::uint32_t node) const {
  double const after = excess(size_after(node));
  return after == 0 || after < excess(size_of_1_);
}

template <class Changed>
void Bisection::move(std::uint32_t node, Changed&& changed) {
  size_of_1_ = size_after(node);
  cut_ -= gain_[node];
  side_[node] ^= 1;
  gain_[node] = -gain_[node];
  for (auto const& [to, weight] : graph_.of(node)) {
    gain_[to] += side_[to] == side_[node] ? -2 * weight : 2 * weight;
    changed(to);
  }
}

void Bisection::grow(std::span<std::uint32_t const> order) {
  set_sides(std::vector<std::uint8_t>(graph_.nodes()));
  Gains next;
  std::size_t seed = 0;
  auto const share = [this](std::size_t k) { return total_[k] > 0 ? size_of_1_[k] / total_[k] : options_.share; };
  while (share(0) + share(1) < 2 * options_.share) {
    if (next.empty()) {
      while (seed < order.size() && side_[order[seed]] == 1) ++seed;
      if (seed == order.size()) return;
      next.emplace(gain_[order[seed]], order[seed]);
    }
    throw_if_stopped(kPartitioning);
    auto const [gain, node] = next.top();
    next.pop();
    if (side_[node] == 1 || gain != gain_[node]) continue;
    move(node, [&](std::uint32_t other) {
      if (side_[other] == 0) next.emplace(gain_[other], other);
    });
  }
}

void Bisection::improve() {
  for (int round = 0; round < kRounds; ++round) {
    double const before = badness();
    improve_once();
    if (badness() > before * (1 - 1e-4)) break;
  }
}

// Moves each node at most once, the best first, and then undoes the moves after the best cut. The first moves of a
// round may make the cut worse, so a round can leave a local minimum.
void Bisection::improve_once() {
  Gains next[2];  // of the nodes of each side
  std::vector<bool> locked(graph_.nodes());
  auto const add = [&](std::uint32_t n) {
    if (!locked[n]) next[side_[n]].emplace(gain_[n], n);
  };
  for (std::uint32_t n = 0; n < graph_.nodes(); ++n) add(n);
  std::vector<std::uint32_t> moves;
  std::size_t kept = 0;
  double best = badness();
  while (moves.size() < kept + kFutileMoves) {
    throw_if_stopped(kPartitioning);
    for (std::uint8_t side = 0; side < 2; ++side) {
      auto const is_old = [&] {
        auto const [gain, node] = next[side].top();
        return locked[node] || side_[node] != side || gain != gain_[node];
      };
      while (!next[side].empty() && is_old()) next[side].pop();
    }
    auto const allowed = [&](int side) { return !next[side].empty() && is_allowed(next[side].top().second); };
    bool const both[] = {allowed(0), allowed(1)};
    if (!both[0] && !both[1]) {
      if (next[0].empty() && next[1].empty()) break;
      next[next[0].empty() || (!next[1].empty() && next[0].top() < next[1].top()) ? 1 : 0].pop();
      continue;
    }
    int const from = both[0] && (!both[1] || next[0].top() > next[1].top()) ? 0 : 1;
    std::uint32_t const node = next[from].top().second;
    locked[node] = true;
    move(node, add);
    moves.push_back(node);
    if (badness() < best) best = badness(), kept = moves.size();
  }
  for (; moves.size() > kept; moves.pop_back()) move(moves.back(), [](std::uint32_t) {});
}

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
