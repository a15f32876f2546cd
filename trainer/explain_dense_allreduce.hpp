// SPDX-License-Identifier: Apache-2.0
// Says in words how the gradients of dense layers are summed over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpups/top_k_allreduce.hpp"

namespace gpups::trainer {

// The sums of a step.
struct DenseAllreduceSummary {
  // Sums of all numbers of some layers, or of their largest.
  struct LayerSums {
    std::size_t sums = 0, numbers = 0;
  };
  LayerSums exact{}, largest{};
  int grid_log2 = -30;
  std::optional<TopKOptions> top_k{};      // of the largest
  AllreduceAlgorithm const* by = nullptr;  // which sums them
};

// By all ranks.
struct DenseAllreduceTraffic {
  std::uint64_t bytes = 0, steps = 0;
};

// Lines for a log, one for each part; none where nobody is to be summed with.
std::vector<std::string> explain(DenseAllreduceSummary const& sums, int ranks, DenseAllreduceTraffic const& sent);

}  // namespace gpups::trainer
