// SPDX-License-Identifier: Apache-2.0
// Graphs for the placement. A bigraph has samples and rows. In a weighted graph, nodes are rows, or clusters of rows,
// and an edge weighs as much as the samples that read rows of both of its nodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpups::trainer {

// The bigraph of samples and rows: which rows of the tables each training sample reads.

// Rows are numbered from 0 over all tables. Takes 4 bytes per entry and 8 bytes per sample.
struct Bigraph {
  std::uint32_t rows = 0;
  std::vector<std::uint64_t> offsets{0};  // (samples + 1): sample i has entries offsets[i] .. offsets[i + 1] - 1
  std::vector<std::uint32_t> entries;     // the row of each entry

  std::size_t samples() const { return offsets.size() - 1; }
  std::uint64_t bytes() const {
    return offsets.size() * sizeof(std::uint64_t) + entries.size() * sizeof(std::uint32_t);
  }
  std::span<std::uint32_t const> rows_of(std::size_t sample) const {
    return {entries.data() + offsets[sample], entries.data() + offsets[sample + 1]};
  }
  void add(std::span<std::uint32_t const> rows_of_sample) {
    entries.insert(entries.end(), rows_of_sample.begin(), rows_of_sample.end());
    offsets.push_back(entries.size());
  }
};

// How much the place of each row matters.
struct RowWeights {
  // The expected number of reads of the row in a batch, divided by the expected number of its entries there. It is near
  // 1 for rare rows and near 0 for rows that occur many times in each batch, because a rank reads a row once a step.
  std::vector<float> cost;
  // The row's share of the samples that read it, in proportion to `cost`. The sum over all rows is the number of
  // samples.
  std::vector<float> load;
};
// batch_samples: number of samples that a rank reads together.
RowWeights row_weights(Bigraph const& graph, double batch_samples);

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
