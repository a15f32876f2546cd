// SPDX-License-Identifier: Apache-2.0
// Makes a graph smaller: merges pairs of nodes that a heavy edge joins (Karypis and Kumar, SIAM J. Sci. Comput. 1998).
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/placement/weighted_graph.hpp"

namespace gpups::trainer {

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

}  // namespace gpups::trainer
