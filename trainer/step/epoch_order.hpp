// SPDX-License-Identifier: Apache-2.0
// The order of samples in an epoch. It depends on the number of samples, a seed and the epoch only.
//
// Blocks of consecutive samples are permuted, and the samples in each window of blocks are shuffled. Memory is
// proportional to a window. A rank that reads a part of the order reads the blocks of its windows only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpups::trainer {

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

}  // namespace gpups::trainer
