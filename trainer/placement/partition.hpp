// SPDX-License-Identifier: Apache-2.0
// Partitions the bigraph of samples and rows into parts, so that a sample mostly reads rows of its own part (HET-GMP,
// Miao et al., SIGMOD 2022).
//
// Neighbouring parts belong together: parts come from repeated bisection, so the parts 0 .. n/2 - 1, for example, read
// few rows of the others. A rank can thus own a range of parts.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/placement/weighted_graph.hpp"

namespace gpups::trainer {

struct PartitionOptions {
  std::uint32_t parts = 8;  // 1 .. 65536
  std::uint64_t seed = 1;
  double slack = 0.1;           // a part may have this share more than an equal share of the rows, and of the load
  double batch_samples = 1024;  // samples that all parts together read in a step, see RowWeights

  bool operator==(PartitionOptions const&) const = default;
};

// The part of each row and of each sample.
struct Partition {
  std::uint32_t parts = 1;
  std::vector<std::uint16_t> of_row, of_sample;
  std::vector<float> cost_of_row;  // see RowWeights
};

// Partitions rows, and assigns each sample to the part that has most of its rows, by cost. A sample with a tie goes to
// the part that has the fewest samples.
//
// The result depends on the arguments only. Time and memory are linear in the number of entries, for a bounded number
// of rows per sample: a constant number of passes. Memory: about 50 bytes per entry. One thread.
Partition partition(Bigraph const& graph, PartitionOptions const& options);

}  // namespace gpups::trainer
