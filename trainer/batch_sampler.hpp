// SPDX-License-Identifier: Apache-2.0
// Cuts epochs into global batches, batches into microbatches, and gives a rank its share.
//
// The batch of a clock is a function of (data, options, clock), so a run resumes by its clock alone. Epochs cut the
// data anew, or, with `same_batches`, are the first epoch's batches in an order of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/epoch_order.hpp"

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

struct BatchOptions {
  std::uint32_t batch_size = 1024;  // samples of a global batch; the last one of an epoch may have fewer
  std::uint32_t microbatches = 8;   // V: sample i of a batch of B is in microbatch floor(i * V / B)
  std::uint64_t seed = 1;
  std::uint64_t block_samples = 256;  // of the order of samples, see EpochOrder
  bool same_batches = false;
  Rank rank{};
  std::uint32_t ranks = 1;  // rank r of N computes microbatches floor(r * V / N) .. floor((r + 1) * V / N) - 1
};

class BatchSampler {
 public:
  // Throws Error where a rank would have no microbatch. REQUIRES: samples > 0.
  BatchSampler(std::uint64_t samples, BatchOptions const& options);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Which of the batches of its epoch a clock has, < steps_per_epoch(). With same_batches: equal numbers, equal
  // batches.
  std::int64_t batch_number(Clock clock);
  // Samples of the global batch.
  std::uint32_t samples(Clock clock);
  // This rank's share. It is empty where a small last batch leaves nothing for the rank.
  Batch make(Clock clock);

 private:
  std::uint64_t samples_;
  BatchOptions options_;
  std::int64_t steps_per_epoch_;
  EpochOrder order_, order_of_batches_;
};

}  // namespace gpups::trainer
