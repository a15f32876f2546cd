// SPDX-License-Identifier: Apache-2.0
// Cuts epochs into global batches and batches into microbatches, and returns the share of one rank.
//
// An epoch of n samples has ceil(n / B) batches, whose sizes differ by one at most. So a sample has the same weight in
// each batch: gradients are means over a batch, and those of a short last batch would move its rows many times as far.
//
// The batch of a clock depends on the data, the options and the clock only, so a run needs nothing but its clock to
// resume. Each epoch cuts the data into new batches, in the order of EpochOrder. With `same_batches`, each epoch uses
// the batches of the first epoch in a new order. With a placement, a global batch has the same samples as without, in
// another order: microbatch m has the samples of part m, as far as the sizes of microbatches, which do not change,
// allow it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/placement/placement.hpp"

namespace gpups::trainer {

// The order of samples in an epoch. It depends on the number of samples, a seed and the epoch only.
//
// Blocks of consecutive samples are permuted, and the samples in each window of blocks are shuffled. Memory is
// proportional to a window. A rank that reads a part of the order reads the blocks of its windows only.

// The size of the data, and of blocks and windows.
struct EpochOrderOptions {
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  std::uint64_t block_samples = 256;
  std::uint64_t window_blocks = 256;
};

// Computes parts of the order. One thread at a time.
class EpochOrder {
 public:
  explicit EpochOrder(EpochOrderOptions const& options);

  // Sets indices[i] to the sample at position first + i of the epoch. Fast if positions increase from call to call.
  // REQUIRES: first + indices.size() <= samples.
  void fill(std::uint64_t epoch, std::uint64_t first, std::span<std::uint64_t> indices);

 private:
  // Returns the block at place `place` of the epoch: a permutation that is computed without a table.
  std::uint64_t block_at(std::uint64_t place) const;
  std::uint64_t window_begin(std::uint64_t window) const;
  void load_epoch(std::uint64_t epoch);
  void load_window(std::uint64_t window);

  EpochOrderOptions options_;
  std::uint64_t blocks_, windows_;
  unsigned half_bits_ = 1;  // of the permutation's domain, 4^half_bits_ >= blocks_
  bool loaded_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t short_place_ = 0;  // place of the last block, which may be short, in this epoch
  std::uint64_t window_ = 0, window_first_ = 0;
  std::vector<std::uint64_t> window_order_;
};

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
  std::uint32_t batch_size = 1024;  // B: largest number of samples of a global batch
  std::uint32_t microbatches = 8;   // V: sample i of a batch of b is in microbatch floor(i * V / b)
  std::uint64_t seed = 1;
  std::uint64_t block_samples = 256;  // see EpochOrder
  bool shuffled = true;  // false: all epochs have the samples in their order, and the last batch may be short
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
  // Returns this rank's share. It is empty if the batch is too small for all ranks.
  Batch make(Clock clock);

 private:
  // Returns the place in the epoch's order of the first sample of a batch.
  std::uint64_t first_sample_of(std::uint64_t batch) const;
  // Returns the samples first .. last - 1 of the clock's global batch.
  std::vector<std::uint64_t> samples_of(Clock clock, std::uint32_t first, std::uint32_t last);

  std::uint64_t samples_;
  BatchOptions options_;
  std::int64_t steps_per_epoch_;
  EpochOrder order_, order_of_batches_;
};

}  // namespace gpups::trainer
