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

// Lines for a log, one for each part; none where nobody is to be summed with. sent: bytes of all ranks in these steps.
std::vector<std::string> explain(SumsOfStep const& sums, int ranks, std::uint64_t sent, std::uint64_t steps);

}  // namespace gpups::trainer
