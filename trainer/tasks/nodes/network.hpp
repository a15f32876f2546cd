// SPDX-License-Identifier: Apache-2.0
// A network in memory: nodes with names, and the neighbours of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// An edge from a node to another, as numbers of the dictionary.
struct WeightedEdge {
  std::uint32_t from, to;
  double weight;
};

// Takes 4 bytes for each edge and direction, and 8 more with weights, and about 50 bytes and its name for each node.
class Network {
 public:
  Network() = default;
  // Equal edges count once, with the sum of their weights. directed: false adds each edge in both directions. weighted:
  // false ignores weights. REQUIRES: edges have numbers of nodes.
  Network(Dictionary nodes, std::vector<WeightedEdge> edges, bool directed, bool weighted);

  Dictionary const& nodes() const { return nodes_; }
  // Returns the nodes to which edges lead, in ascending order.
  std::span<std::uint32_t const> neighbours(std::uint32_t node) const {
    return std::span(to_).subspan(offsets_[node], offsets_[node + 1] - offsets_[node]);
  }
  bool has_edge(std::uint32_t from, std::uint32_t to) const;
  // Returns a neighbour, in proportion to the weights of edges, for 64 random bits. REQUIRES: there are neighbours.
  std::uint32_t draw_neighbour(std::uint32_t node, std::uint64_t bits) const;
  // Returns the sum of weights of the edges to each node; the number of edges without weights.
  std::vector<double> weights_of_nodes() const;

  std::size_t edges() const { return to_.size(); }  // in each direction
  std::uint64_t bytes() const;
  std::uint64_t digest() const;

 private:
  Dictionary nodes_{"node"};
  std::vector<std::uint64_t> offsets_{0};  // node n has the edges offsets_[n] .. offsets_[n + 1] - 1
  std::vector<std::uint32_t> to_;
  std::vector<double> sums_;  // of the weights of a node's edges up to and including this one; empty without weights
};

}  // namespace gpups::trainer
