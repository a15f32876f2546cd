// SPDX-License-Identifier: Apache-2.0
// What a model knows of its training data before it learns: how its numbers are spread, and how many clicks there are.
// It belongs to the model as its weights do.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/click/samples.hpp"

namespace gpups::trainer {

// Its logarithm, both ways from 0; 0 where it is missing.
inline float log_of_number(float x) {
  if (std::isnan(x)) return 0;
  return std::copysign(std::log1p(std::fabs(x)), x);
}

struct SampleStatistics {
  std::vector<float> mean, deviation;  // (numbers) of their logarithms, see log_of_number(); deviations are above 0
  float click_share = 0.5F;            // the mean of labels

  // The logit of a model that knows no more.
  float base_logit() const;

  bool operator==(SampleStatistics const&) const = default;
};

// Reads samples first .. first + count - 1, some at a time: all of them, or a million from blocks that lie evenly
// between them.
void each_measured(Samples const& samples, std::uint64_t first, std::uint64_t count,
                   std::function<void(SampleBatch const&)> const& measure);
// Of what each_measured() reads. REQUIRES: count > 0.
SampleStatistics measure_samples(Samples const& samples, std::uint64_t first, std::uint64_t count);

// As a part of a checkpoint.
Blob to_blob(SampleStatistics const& statistics);
// Throws Error where there are none for this many numbers.
SampleStatistics sample_statistics(std::span<Blob const> blobs, std::size_t numbers);

}  // namespace gpups::trainer
