// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/coarsen.hpp"

#include <numeric>
#include <utility>

#include "trainer/base/random.hpp"

namespace gpups::trainer {

Coarsened coarsen(WeightedGraph const& graph, NodeSize const& size_max, std::uint64_t seed) {
  std::uint32_t const free = graph.nodes();  // of a node without a cluster
  std::vector<std::uint32_t> cluster(graph.nodes(), free);
  std::uint32_t clusters = 0;
  for (std::uint32_t const node : shuffled_numbers(graph.nodes(), seed)) {
    if (cluster[node] != free) continue;
    NodeSize const& size = graph.sizes[node];
    std::uint32_t partner = node;
    double best = 0;
    for (auto const& [to, weight] : graph.of(node)) {
      NodeSize const& other = graph.sizes[to];
      if (cluster[to] != free || size[0] + other[0] > size_max[0] || size[1] + other[1] > size_max[1]) continue;
      // Without the size, heavy nodes would get heavier and heavier, and sides could not be balanced.
      double const rating = weight / (other[0] * (other[1] + 1));
      if (rating > best) best = rating, partner = to;
    }
    cluster[node] = cluster[partner] = clusters++;
  }
  return {contract(graph, cluster, clusters), std::move(cluster)};
}

std::vector<std::uint32_t> shuffled_numbers(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  RandomBits const bits(seed, std::uint64_t{0x6f72646572});  // "order"
  for (std::uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i, bits(i))]);
  return order;
}

}  // namespace gpups::trainer
