// SPDX-License-Identifier: Apache-2.0
// One rank's samples of a global batch: whole microbatches, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

// Numbers of a dictionary's names: entities and relations are numbered from 0.
struct Triple {
  std::uint32_t subject, relation, object;
  bool operator==(Triple const&) const = default;
};

// A fixed part of a global batch: the same samples in it whatever the number of ranks.
struct Microbatch {
  std::uint32_t number;        // in the global batch, < microbatches of the run
  std::uint32_t first, count;  // its samples in Batch::triples
};

struct Batch {
  Clock clock{};
  std::int64_t epoch = 0;
  std::vector<Triple> triples;
  // For each triple, its number in the global batch: what its negatives are drawn by.
  std::vector<std::uint32_t> sample_numbers;
  std::vector<Microbatch> microbatches;
};

}  // namespace gpups::trainer
