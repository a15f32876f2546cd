// SPDX-License-Identifier: Apache-2.0
// Cuts epochs into global batches and batches into microbatches, and returns the share of one rank.
//
// The batch of a clock depends on the data, the options and the clock only, so a run needs nothing but its clock to
// resume. Each epoch cuts the data into new batches. With `same_batches`, each epoch uses the batches of the first
// epoch in a new order. With a placement, a global batch has the same samples as without, in another order: microbatch
// m has the samples of part m, as far as the sizes of microbatches, which do not change, allow it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/placement/placement.hpp"
#include "trainer/step/epoch_order.hpp"

namespace gpups::trainer {

// A fixed part of a global batch. Its samples do not depend on the number of ranks.
struct Microbatch {
  std::uint32_t number;        // index in the global batch, < BatchOptions::microbatches
  std::uint32_t first, count;  // range of its samples in Batch::samples
};

// One rank's share of a global batch: whole microbatches, in order.
struct Batch {
  Clock clock{};
  std::int64_t epoch = 0;
  std::vector<std::uint64_t> samples;  // index of each sample in the data
  // For each sample, its index in the global batch. Random choices for a sample are keyed by this index.
  std::vector<std::uint32_t> sample_numbers;
  std::vector<Microbatch> microbatches;
  std::uint32_t batch_samples = 0;  // size of the global batch
};

// Options of a BatchSampler; all except `rank` are equal on all ranks.
struct BatchOptions {
  std::uint32_t batch_size = 1024;  // samples of a global batch; the last batch of an epoch may have fewer
  std::uint32_t microbatches = 8;   // V: sample i of a batch of B is in microbatch floor(i * V / B)
  std::uint64_t seed = 1;
  std::uint64_t block_samples = 256;  // see EpochOrder
  bool shuffled = true;               // false: all epochs have the samples in their order
  bool same_batches = false;
  std::shared_ptr<Placement const> placement{};  // of V parts; may be null
  Rank rank{};
  std::uint32_t ranks = 1;  // rank r of N computes microbatches floor(r * V / N) .. floor((r + 1) * V / N) - 1
};

// Computes the batch of each clock for one rank. One thread at a time.
class BatchSampler {
 public:
  // samples: number of training samples, > 0. Throws Error if there are more ranks than microbatches.
  BatchSampler(std::uint64_t samples, BatchOptions const& options);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Returns the index of the clock's batch in its epoch, < steps_per_epoch(). With same_batches, steps with equal
  // indices have equal batches.
  std::int64_t batch_number(Clock clock);
  // Returns the number of samples in the global batch.
  std::uint32_t samples(Clock clock);
  // Returns this rank's share. It is empty if the last batch of an epoch is too small for all ranks.
  Batch make(Clock clock);

 private:
  // Returns the samples first .. last - 1 of the clock's global batch.
  std::vector<std::uint64_t> samples_of(Clock clock, std::uint32_t first, std::uint32_t last);

  std::uint64_t samples_;
  BatchOptions options_;
  std::int64_t steps_per_epoch_;
  EpochOrder order_, order_of_batches_;
};

}  // namespace gpups::trainer
