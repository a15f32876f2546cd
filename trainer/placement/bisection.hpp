// SPDX-License-Identifier: Apache-2.0
// Cuts a graph into two sides of given sizes, so that the edges between them have little weight. The method is
// multilevel bisection (Karypis and Kumar, SIAM J. Sci. Comput. 1998): the graph is made smaller level by level, the
// smallest one is cut several times by growing a side from a random node, and the best cut is improved on each level
// by moves of single nodes (Fiduccia and Mattheyses, DAC 1982).
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "trainer/placement/weighted_graph.hpp"

namespace gpups::trainer {

// A smaller graph, and the node of it that contains each node of the larger one.
struct Coarsened {
  WeightedGraph graph;
  std::vector<std::uint32_t> node_of;
};

// Makes a graph smaller (Karypis and Kumar, SIAM J. Sci. Comput. 1998). Merges each node, in random order, with the
// free neighbour that has the heaviest edge for its size. size_max: of a merged node. Time and memory are linear in the
// number of edges, except for sorting the edges of each node.
Coarsened coarsen(WeightedGraph const& graph, NodeSize const& size_max, std::uint64_t seed);

// Returns the numbers 0 .. count - 1 in random order.
std::vector<std::uint32_t> shuffled_numbers(std::uint32_t count, std::uint64_t seed);

// What bisect() should reach.
struct BisectOptions {
  double share = 0.5;  // of the sizes that side 1 gets
  double slack = 0.1;  // a side may be larger than its share by this factor
  std::uint64_t seed = 1;
};

// Sides are 0 and 1; all nodes begin at side 0.
class Bisection {
 public:
  Bisection(WeightedGraph const& graph, BisectOptions const& options);

  std::vector<std::uint8_t> const& sides() const { return side_; }
  void set_sides(std::vector<std::uint8_t> sides);
  // Returns the weight of the edges between the sides, and more if a side is too large.
  double badness() const { return cut_ + kExcessWeight * weight_ * excess(size_of_1_); }

  // Moves nodes to side 1, from the first nodes of `order` outwards, until it has its share.
  void grow(std::span<std::uint32_t const> order);
  // Moves nodes while the cut gets better.
  void improve();

 private:
  // Nodes by the gain of their move. Entries with an outdated gain are removed when they are at the top.
  using Gains = std::priority_queue<std::pair<float, std::uint32_t>>;
  static constexpr double kExcessWeight = 2;

  // Returns by how much the sides exceed the slack, as a share of their size.
  double excess(NodeSize const& size_of_1) const;
  NodeSize size_after(std::uint32_t node) const;
  bool is_allowed(std::uint32_t node) const;
  // Moves a node and calls changed(n) for each neighbour n, whose gain has changed.
  template <class Changed>
  void move(std::uint32_t node, Changed&& changed);
  void improve_once();

  WeightedGraph const& graph_;
  BisectOptions const options_;
  NodeSize total_{}, size_of_1_{};
  double cut_ = 0, weight_ = 1e-6;  // of the edges between the sides; of all edges
  std::vector<std::uint8_t> side_;
  std::vector<float> gain_;  // of each node: by how much a move makes the cut smaller
};

// Returns the side of each node, 0 or 1. If nodes are too large for the slack, sides are as balanced as the moves find.
// Time: in proportion to the number of edges, times its logarithm.
std::vector<std::uint8_t> bisect(WeightedGraph const& graph, BisectOptions const& options);

}  // namespace gpups::trainer
