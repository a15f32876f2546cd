// SPDX-License-Identifier: Apache-2.0
// Places rows and samples by a partition of their bigraph (see partition.hpp): microbatch p of each global batch gets
// samples that mostly read rows of part p, and the rank that computes it should own these rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/placement/partition.hpp"

namespace gpups::trainer {

// The microbatches of a rank: contiguous ranges, as equal as possible.

// Returns the first microbatch of rank `rank`; its last one is first_microbatch(rank + 1, ...) - 1. REQUIRES: rank <=
// ranks.
constexpr std::uint32_t first_microbatch(std::uint64_t rank, std::uint64_t ranks, std::uint64_t microbatches) {
  return static_cast<std::uint32_t>(rank * microbatches / ranks);
}

// The rows that samples read in every epoch, with their keys.
struct SampleRows {
  struct TableKeys {
    TableId table{};
    std::vector<Key> keys;
  };
  Bigraph graph;  // its rows are those of the first table, then those of the second, and so on
  std::vector<TableKeys> tables;
};

// Immutable after construction. Any thread.
class Placement {
 public:
  // options.parts: the number of microbatches of a global batch. Blocks for the time of partition().
  Placement(SampleRows rows, PartitionOptions const& options);

  std::uint32_t parts() const { return partition_.parts; }
  std::uint16_t part_of_sample(std::uint64_t sample) const { return partition_.of_sample[sample]; }
  // Returns the tables whose rows have parts.
  std::vector<TableId> tables() const;
  // Returns the keys of a table's rows in the parts begin .. end - 1.
  std::vector<Key> keys(TableId table, std::uint32_t begin, std::uint32_t end) const;

  // Divides the samples of a global batch over the microbatches. sizes: the number of samples of each, with the same
  // sum. Returns the indices of the samples in the batch: those of microbatch 0, then those of microbatch 1, and so on,
  // each in increasing order. A sample goes to its part. If the microbatch of a part is too small, the samples that
  // lose least go to other microbatches.
  std::vector<std::uint32_t> assign(std::span<std::uint64_t const> samples, std::span<std::uint32_t const> sizes) const;

  // The share of entries whose row is in another part than their sample; with `ranks` > 0, of another rank.
  double remote_share(std::uint32_t ranks = 0) const;
  // Returns the bytes of memory that the object takes.
  std::uint64_t bytes() const;

 private:
  SampleRows rows_;
  Partition partition_;
};

}  // namespace gpups::trainer
