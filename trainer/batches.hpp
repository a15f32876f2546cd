// SPDX-License-Identifier: Apache-2.0
// Cuts epochs into global batches, batches into microbatches, and gives a rank its share.
//
// The batch of a clock is a function of (data, options, clock), so a run resumes by its clock alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/batch.hpp"
#include "trainer/epoch_order.hpp"

namespace gpups::trainer {

struct BatchOptions {
  std::uint32_t batch = 1024;      // samples of a global batch; the last one of an epoch may have fewer
  std::uint32_t microbatches = 8;  // V: sample i of a batch of B is in microbatch floor(i * V / B)
  std::uint64_t seed = 1;
  Rank rank{};
  std::uint32_t ranks = 1;  // rank r of N computes microbatches floor(r * V / N) .. floor((r + 1) * V / N) - 1
};

class Batches {
 public:
  // `triples` must stay. Throws Error where a rank would have no microbatch.
  Batches(std::span<Triple const> triples, BatchOptions const& options);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Samples of the global batch.
  std::uint32_t samples(Clock clock) const;
  // This rank's share. It is empty where a small last batch leaves nothing for the rank.
  Batch make(Clock clock);

 private:
  std::span<Triple const> triples_;
  BatchOptions options_;
  std::int64_t steps_per_epoch_;
  EpochOrder order_;
  std::vector<std::uint64_t> indices_;  // reused
};

}  // namespace gpups::trainer
