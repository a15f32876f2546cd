// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/weighted_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/base/long_loop.hpp"

namespace gpups::trainer {

RowWeights row_weights(Bigraph const& graph, double batch_samples) {
  RowWeights weights{std::vector<float>(graph.rows), std::vector<float>(graph.rows)};
  std::vector<std::uint64_t> readers(graph.rows);
  for (std::uint32_t row : graph.entries) ++readers[row];
  for (std::uint32_t row = 0; row < graph.rows; ++row) {
    double const entries = static_cast<double>(readers[row]) * batch_samples / static_cast<double>(graph.samples());
    weights.cost[row] = entries < 1e-6 ? 1.0F : static_cast<float>(-std::expm1(-entries) / entries);
  }
  for (std::size_t i = 0; i < graph.samples(); ++i) {
    float sum = 0;
    for (std::uint32_t row : graph.rows_of(i)) sum += weights.cost[row];
    for (std::uint32_t row : graph.rows_of(i)) weights.load[row] += weights.cost[row] / sum;
  }
  return weights;
}

namespace {

// Merges the edges of each node that have equal ends. offsets: of the edges of each node in `edges`.
void merge_edges(WeightedGraph& graph) {
  std::uint64_t used = 0, begin = 0;
  for (std::uint32_t n = 0; n < graph.nodes(); ++n) {
    auto const first = graph.edges.begin() + static_cast<std::ptrdiff_t>(begin);
    auto const last = graph.edges.begin() + static_cast<std::ptrdiff_t>(graph.offsets[n + 1]);
    // Stable, because float sums depend on their order.
    std::stable_sort(first, last, [](auto const& a, auto const& b) { return a.to < b.to; });
    begin = graph.offsets[n + 1];
    graph.offsets[n] = used;
    for (auto edge = first; edge != last; ++edge) {
      if (used > graph.offsets[n] && graph.edges[used - 1].to == edge->to) {
        graph.edges[used - 1].weight += edge->weight;
      } else {
        graph.edges[used++] = *edge;
      }
    }
  }
  graph.offsets.back() = used;
  graph.edges.resize(used);
}

// Calls visit(a, b, weight) for the pairs of rows of each sample.
template <class Visit>
void each_pair(Bigraph const& graph, RowWeights const& weights, Visit&& visit) {
  for (std::size_t i = 0; i < graph.samples(); ++i) {
    auto const rows = graph.rows_of(i);
    float sum = 0;
    for (std::uint32_t const row : rows) sum += weights.cost[row];
    throw_if_stopped("dividing the rows among the ranks");
    for (std::size_t a = 0; a < rows.size(); ++a) {
      for (std::size_t b = a + 1; b < std::min(rows.size(), a + 1 + kPairDistance); ++b) {
        if (rows[a] != rows[b]) visit(rows[a], rows[b], weights.cost[rows[a]] * weights.cost[rows[b]] / sum);
      }
    }
  }
}

}  // namespace

WeightedGraph graph_of_rows(Bigraph const& graph, RowWeights const& weights) {
  WeightedGraph pairs;
  pairs.sizes.resize(graph.rows);
  for (std::uint32_t row = 0; row < graph.rows; ++row) pairs.sizes[row] = {1, weights.load[row]};
  pairs.offsets.resize(graph.rows + std::size_t{1});
  each_pair(graph, weights,
            [&](std::uint32_t a, std::uint32_t b, float) { ++pairs.offsets[a + 1], ++pairs.offsets[b + 1]; });
  std::partial_sum(pairs.offsets.begin(), pairs.offsets.end(), pairs.offsets.begin());
  pairs.edges.resize(pairs.offsets.back());
  std::vector<std::uint64_t> next(pairs.offsets.begin(), pairs.offsets.end() - 1);
  each_pair(graph, weights, [&](std::uint32_t a, std::uint32_t b, float weight) {
    pairs.edges[next[a]++] = {b, weight};
    pairs.edges[next[b]++] = {a, weight};
  });
  merge_edges(pairs);
  return pairs;
}

WeightedGraph contract(WeightedGraph const& graph, std::span<std::uint32_t const> cluster, std::uint32_t clusters) {
  WeightedGraph coarse;
  coarse.sizes.resize(clusters);
  coarse.offsets.resize(clusters + std::size_t{1});
  for (std::uint32_t n = 0; n < graph.nodes(); ++n) {
    coarse.sizes[cluster[n]][0] += graph.sizes[n][0], coarse.sizes[cluster[n]][1] += graph.sizes[n][1];
    for (auto const& edge : graph.of(n)) coarse.offsets[cluster[n] + 1] += cluster[edge.to] != cluster[n] ? 1 : 0;
  }
  std::partial_sum(coarse.offsets.begin(), coarse.offsets.end(), coarse.offsets.begin());
  coarse.edges.resize(coarse.offsets.back());
  std::vector<std::uint64_t> next(coarse.offsets.begin(), coarse.offsets.end() - 1);
  for (std::uint32_t n = 0; n < graph.nodes(); ++n) {
    for (auto const& edge : graph.of(n)) {
      if (cluster[edge.to] != cluster[n]) coarse.edges[next[cluster[n]]++] = {cluster[edge.to], edge.weight};
    }
  }
  merge_edges(coarse);
  return coarse;
}

WeightedGraph subgraph(WeightedGraph const& graph, std::span<std::uint32_t const> nodes) {
  constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(graph.nodes(), kAbsent);
  for (std::uint32_t n = 0; n < nodes.size(); ++n) number[nodes[n]] = n;
  WeightedGraph some;
  some.offsets.push_back(0);
  for (std::uint32_t const node : nodes) {
    some.sizes.push_back(graph.sizes[node]);
    for (auto const& edge : graph.of(node)) {
      if (number[edge.to] != kAbsent) some.edges.push_back({number[edge.to], edge.weight});
    }
    some.offsets.push_back(some.edges.size());
  }
  return some;
}

}  // namespace gpups::trainer
