// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/network.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

// Sorts edges, and adds up the weights of equal ones.
void merge_equal(std::vector<WeightedEdge>& edges) {
  auto const nodes = [](WeightedEdge const& edge) { return std::pair(edge.from, edge.to); };
  std::stable_sort(edges.begin(), edges.end(), [&](auto const& a, auto const& b) { return nodes(a) < nodes(b); });
  std::size_t kept = 0;
  for (WeightedEdge const& edge : edges) {
    if (kept > 0 && nodes(edges[kept - 1]) == nodes(edge)) {
      edges[kept - 1].weight += edge.weight;
    } else {
      edges[kept++] = edge;
    }
  }
  edges.resize(kept);
}

}  // namespace

Network::Network(Dictionary nodes, std::vector<WeightedEdge> edges, bool directed, bool weighted)
    : nodes_(std::move(nodes)) {
  if (!directed) {
    std::size_t const given = edges.size();
    for (std::size_t i = 0; i < given; ++i) {
      auto const [from, to, weight] = edges[i];
      if (from != to) edges.push_back({to, from, weight});
    }
  }
  merge_equal(edges);
  offsets_.assign(nodes_.size() + 1, 0);
  to_.reserve(edges.size());
  double sum = 0;
  for (auto const& [from, to, weight] : edges) {
    if (offsets_[from + 1] == 0) sum = 0;  // the first edge of the node
    ++offsets_[from + 1];
    to_.push_back(to);
    sum += weight;
    if (weighted) sums_.push_back(sum);
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) offsets_[n + 1] += offsets_[n];
}

bool Network::has_edge(std::uint32_t from, std::uint32_t to) const {
  auto const all = neighbours(from);
  return std::binary_search(all.begin(), all.end(), to);
}

std::uint32_t Network::draw_neighbour(std::uint32_t node, std::uint64_t bits) const {
  auto const all = neighbours(node);
  if (sums_.empty()) return all[(bits >> 32) * all.size() >> 32];
  auto const sums = std::span(sums_).subspan(offsets_[node], all.size());
  double const at = static_cast<double>(bits >> 11) * 0x1p-53 * sums.back();
  auto const found = std::upper_bound(sums.begin(), sums.end() - 1, at);
  return all[static_cast<std::size_t>(found - sums.begin())];
}

std::vector<double> Network::weights_of_nodes() const {
  std::vector<double> weights(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    for (std::uint64_t e = offsets_[n]; e < offsets_[n + 1]; ++e) {
      double const before = sums_.empty() || e == offsets_[n] ? 0 : sums_[e - 1];
      weights[to_[e]] += sums_.empty() ? 1 : sums_[e] - before;
    }
  }
  return weights;
}

std::uint64_t Network::bytes() const {
  return nodes_.bytes() + offsets_.capacity() * sizeof(std::uint64_t) + to_.capacity() * sizeof(std::uint32_t) +
         sums_.capacity() * sizeof(double);
}

std::uint64_t Network::digest() const {
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(nodes_.keys());
  add(offsets_);
  add(to_);
  add(sums_);
  return hash;
}

}  // namespace gpups::trainer
