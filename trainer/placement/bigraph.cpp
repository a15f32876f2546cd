// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/bigraph.hpp"

#include <cmath>

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

}  // namespace gpups::trainer
