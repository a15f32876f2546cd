// SPDX-License-Identifier: Apache-2.0
// Two sides of a graph, and the gain of each move of a node to the other side.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "trainer/placement/bisect.hpp"

namespace gpups::trainer {

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

}  // namespace gpups::trainer
