// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/bisection.hpp"

#include <algorithm>

namespace gpups::trainer {
namespace {

constexpr int kRounds = 10;                // of moves
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

}  // namespace gpups::trainer
