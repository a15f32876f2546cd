// SPDX-License-Identifier: Apache-2.0
// How good predicted probabilities are. All of it is exact, and the same for every number of ranks and order of
// samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

struct ClickMetrics {
  std::int64_t samples = 0;
  double clicks = 0;              // the sum of labels
  double auc = 0.5;               // that a click is ranked above a sample without one; ties count half
  double log_loss = 0;            // mean, natural logarithm
  double calibration = 1;         // predicted clicks by clicks
  double normalized_entropy = 1;  // log_loss by that of a model which knows the mean of labels only
                                  // (He et al.: "Practical lessons from predicting clicks on ads at Facebook", 2014)
};
Metrics to_metrics(ClickMetrics const& metrics);

// A predicted sample.
struct Prediction {
  float probability, label;
  bool operator==(Prediction const&) const = default;
};

// The area under the receiver's curve; a label between 0 and 1 is that share of a click. Sorts its argument. NaN is
// ranked below all. 0.5 where there are no clicks, or nothing else.
double area_under_curve(std::vector<Prediction>& predicted);

// Predictions of one rank as they come.
class PredictionCollector {
 public:
  // piece: predictions that a rank tells the others at a time.
  explicit PredictionCollector(std::size_t piece = std::size_t{1} << 20) : piece_(piece) {}

  // losses: in units of 2^-30.
  void add(std::span<float const> probabilities, std::span<float const> labels, std::span<std::int64_t const> losses);
  bool empty() const { return predicted_.empty(); }

  // Over all ranks; forgets them. Every rank holds all predictions meanwhile, 8 bytes each. Collective.
  ClickMetrics wait_metrics(Store& store);

 private:
  std::vector<Prediction> wait_all(Store& store);

  std::size_t piece_;
  std::vector<Prediction> predicted_;
  std::int64_t loss_ = 0;
};

}  // namespace gpups::trainer
