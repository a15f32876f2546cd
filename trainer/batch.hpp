// SPDX-License-Identifier: Apache-2.0
// One rank's samples of a global batch: whole microbatches, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

// A fixed part of a global batch: the same samples in it whatever the number of ranks.
struct Microbatch {
  std::uint32_t number;        // in the global batch, < microbatches of the run
  std::uint32_t first, count;  // its samples in Batch::samples
};

struct Batch {
  Clock clock{};
  std::int64_t epoch = 0;
  std::vector<std::uint64_t> samples;  // their numbers in the data
  // For each sample, its number in the global batch: what is random about it is drawn by that.
  std::vector<std::uint32_t> sample_numbers;
  std::vector<Microbatch> microbatches;
  std::uint32_t batch_samples = 0;  // of the global batch, over all ranks
};

}  // namespace gpups::trainer
