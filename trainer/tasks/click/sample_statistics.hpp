// SPDX-License-Identifier: Apache-2.0
// Statistics of the training data that a model uses: mean and deviation of each number, and the share of clicks.
// Checkpoints contain them, like the weights.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// Returns log(1 + |x|) with the sign of x; 0 if x is missing (NaN).
inline float log_of_number(float x) {
  if (std::isnan(x)) return 0;
  return std::copysign(std::log1p(std::fabs(x)), x);
}

// Statistics of some samples.
struct SampleStatistics {
  std::vector<float> mean, deviation;  // (numbers): of log_of_number(); deviations are above 0
  float click_share = 0.5F;            // the mean of labels

  // Returns the logit of click_share.
  float base_logit() const;

  bool operator==(SampleStatistics const&) const = default;
};

constexpr std::uint64_t kMeasured = std::uint64_t{1} << 20;  // samples whose statistics are those of all

// Reads samples first .. first + count - 1, and calls `measure` with some at a time: all samples, or about `most` from
// evenly spaced blocks.
void each_measured(Samples const& samples, std::uint64_t first, std::uint64_t count, std::uint64_t most,
                   std::function<void(SampleBatch const&)> const& measure);
// Returns the statistics of the samples that each_measured() reads. REQUIRES: count > 0.
SampleStatistics measure_samples(Samples const& samples, std::uint64_t first, std::uint64_t count);

// Returns the statistics as a blob of a checkpoint.
Blob to_blob(SampleStatistics const& statistics);
// Reads the statistics from a checkpoint. Throws Error if there are none, or not for `numbers` numbers.
SampleStatistics sample_statistics(std::span<Blob const> blobs, std::size_t numbers);

}  // namespace gpups::trainer
