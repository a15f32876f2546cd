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
struct SumsOfStep {
  // Sums of all numbers of some layers, or of their largest.
  struct Part {
    std::size_t sums = 0, numbers = 0;
  };
  Part exact{}, largest{};
  int grid_log2 = -30;
  std::optional<TopKOptions> top_k{};      // of the largest
  AllreduceAlgorithm const* by = nullptr;  // which sums them
};

// By all ranks.
struct SentInSums {
  std::uint64_t bytes = 0, steps = 0;
};

// Lines for a log, one for each part; none where nobody is to be summed with.
std::vector<std::string> explain(SumsOfStep const& sums, int ranks, SentInSums const& sent);

}  // namespace gpups::trainer
