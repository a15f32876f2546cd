// SPDX-License-Identifier: Apache-2.0
// Describes the allreduce of dense gradients, for a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpups/top_k_allreduce.hpp"

namespace gpups::trainer {

// The allreduces of a step.
struct DenseAllreduceSummary {
  struct LayerSums {
    std::size_t sums = 0, numbers = 0;  // number of allreduces, and of gradient elements in them
  };
  LayerSums exact{}, largest{};  // of all elements, and of the largest elements (top-k)
  int grid_log2 = -30;
  std::optional<TopKOptions> top_k{};      // options of `largest`
  AllreduceAlgorithm const* by = nullptr;  // algorithm of `largest`
};

// Bytes that all ranks have sent, and the number of steps.
struct DenseAllreduceTraffic {
  std::uint64_t bytes = 0, steps = 0;
};

// Returns lines for a log: one for `exact`, and one for `largest` if there is any. Returns no lines for a single rank.
std::vector<std::string> explain(DenseAllreduceSummary const& sums, int ranks, DenseAllreduceTraffic const& sent);

}  // namespace gpups::trainer
