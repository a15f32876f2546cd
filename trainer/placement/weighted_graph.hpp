// SPDX-License-Identifier: Apache-2.0
// An undirected graph with weights. Its nodes are rows, or clusters of rows, and an edge weighs as much as the samples
// that read rows of both of its nodes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/placement/bigraph.hpp"

namespace gpups::trainer {

// The two sizes that a partition balances: the number of rows, and their load (see RowWeights).
using NodeSize = std::array<double, 2>;

// Takes 16 bytes per edge and 24 bytes per node.
struct WeightedGraph {
  struct Edge {
    std::uint32_t to;
    float weight;
  };
  std::vector<NodeSize> sizes;         // of each node
  std::vector<std::uint64_t> offsets;  // node n has edges[offsets[n]] .. edges[offsets[n + 1] - 1], by increasing `to`
  std::vector<Edge> edges;             // each edge is listed at both of its nodes

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(sizes.size()); }
  std::span<Edge const> of(std::uint32_t node) const {
    return {edges.data() + offsets[node], edges.data() + offsets[node + 1]};
  }
};

// Returns the graph of rows. A sample that reads many rows has edges between entries at most kPairDistance apart only,
// so time and memory are linear in the number of entries.
inline constexpr std::size_t kPairDistance = 4;
WeightedGraph graph_of_rows(Bigraph const& graph, RowWeights const& weights);

// Returns the graph in which each cluster is one node. cluster: of each node of `graph`, < clusters.
WeightedGraph contract(WeightedGraph const& graph, std::span<std::uint32_t const> cluster, std::uint32_t clusters);

// Returns the subgraph of some nodes, which it numbers in this order.
WeightedGraph subgraph(WeightedGraph const& graph, std::span<std::uint32_t const> nodes);

}  // namespace gpups::trainer
