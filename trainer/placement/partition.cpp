// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/partition.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/base/assert.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/base/random.hpp"
#include "trainer/placement/bisection.hpp"
#include "trainer/placement/weighted_graph.hpp"

namespace gpups::trainer {
namespace {

// Assigns the parts begin .. end - 1 to `nodes`.
void divide(WeightedGraph const& graph, std::vector<std::uint32_t> const& nodes, std::uint32_t begin, std::uint32_t end,
            PartitionOptions const& options, double slack, std::vector<std::uint16_t>& part) {
  if (end - begin == 1) {
    for (std::uint32_t const node : nodes) part[node] = static_cast<std::uint16_t>(begin);
    return;
  }
  std::uint32_t const middle = begin + (end - begin) / 2;
  auto const side =
      bisect(subgraph(graph, nodes), {.share = static_cast<double>(end - middle) / static_cast<double>(end - begin),
                                      .slack = slack,
                                      .seed = random_bits(options.seed, begin, end)});
  std::vector<std::uint32_t> first, second;
  for (std::size_t n = 0; n < nodes.size(); ++n) (side[n] == 0 ? first : second).push_back(nodes[n]);
  divide(graph, first, begin, middle, options, slack, part);
  divide(graph, second, middle, end, options, slack, part);
}

void assign_samples(Bigraph const& graph, Partition& partition) {
  std::vector<std::uint64_t> samples(partition.parts);
  std::vector<std::uint16_t> const& part = partition.of_row;
  for (std::size_t i = 0; i < graph.samples(); ++i) {
    throw_if_stopped("dividing the samples among the ranks");
    std::uint16_t best = 0;
    float most = -1;
    for (std::uint32_t const row : graph.rows_of(i)) {
      float cost = 0;
      for (std::uint32_t const other : graph.rows_of(i)) {
        cost += part[other] == part[row] ? partition.cost_of_row[other] : 0;
      }
      if (cost > most || (cost == most && samples[part[row]] < samples[best])) best = part[row], most = cost;
    }
    ++samples[best];
    partition.of_sample[i] = best;
  }
}

}  // namespace

Partition partition(Bigraph const& graph, PartitionOptions const& options) {
  GPUPS_ASSERT(options.parts >= 1 && options.parts <= 65536 && graph.samples() < ~std::uint32_t{0});
  Partition result{options.parts, std::vector<std::uint16_t>(graph.rows), std::vector<std::uint16_t>(graph.samples()),
                   std::vector<float>(graph.rows, 1.0F)};
  if (options.parts == 1 || graph.rows == 0) return result;
  RowWeights weights = row_weights(graph, options.batch_samples / options.parts);
  std::vector<std::uint32_t> nodes(graph.rows);
  std::iota(nodes.begin(), nodes.end(), 0U);
  int levels = 0;
  while ((1U << levels) < options.parts) ++levels;
  divide(graph_of_rows(graph, weights), nodes, 0, options.parts, options, std::pow(1 + options.slack, 1.0 / levels) - 1,
         result.of_row);

  result.cost_of_row = std::move(weights.cost);
  assign_samples(graph, result);
  return result;
}

}  // namespace gpups::trainer
