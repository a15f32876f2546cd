// SPDX-License-Identifier: Apache-2.0
// Cuts a graph into two sides of given sizes, so that the edges between them have little weight. The method is
// multilevel bisection (Karypis and Kumar, SIAM J. Sci. Comput. 1998): the graph is made smaller level by level, the
// smallest one is cut several times by growing a side from a random node, and the best cut is improved on each level
// by moves of single nodes (Fiduccia and Mattheyses, DAC 1982).
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/placement/weighted_graph.hpp"

namespace gpups::trainer {

// Makes a graph smaller: merges pairs of nodes that a heavy edge joins (Karypis and Kumar, SIAM J. Sci. Comput. 1998).

// A smaller graph, and the node of it that contains each node of the larger one.
struct Coarsened {
  WeightedGraph graph;
  std::vector<std::uint32_t> node_of;
};

// Merges each node, in random order, with the free neighbour that has the heaviest edge for its size. size_max: of a
// merged node. Time and memory are linear in the number of edges, except for sorting the edges of each node.
Coarsened coarsen(WeightedGraph const& graph, NodeSize const& size_max, std::uint64_t seed);

// Returns the numbers 0 .. count - 1 in random order.
std::vector<std::uint32_t> shuffled_numbers(std::uint32_t count, std::uint64_t seed);

// What bisect() should reach.
struct BisectOptions {
  double share = 0.5;  // of the sizes that side 1 gets
  double slack = 0.1;  // a side may be larger than its share by this factor
  std::uint64_t seed = 1;
};

// Returns the side of each node, 0 or 1. If nodes are too large for the slack, sides are as balanced as the moves find.
// Time: in proportion to the number of edges, times its logarithm.
std::vector<std::uint8_t> bisect(WeightedGraph const& graph, BisectOptions const& options);

}  // namespace gpups::trainer
