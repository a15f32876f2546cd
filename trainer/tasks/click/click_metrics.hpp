// SPDX-License-Identifier: Apache-2.0
// Metrics of predicted probabilities. They are exact: the same for every number of ranks and every order of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpups/store.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// Metrics of some samples.
struct ClickMetrics {
  std::int64_t samples = 0;
  double clicks = 0;    // the sum of labels
  double log_loss = 0;  // mean, natural logarithm
  // Nothing if they are not defined: the first and the last if all labels are 0 or all are 1, the second without
  // clicks.
  std::optional<double> auc;          // probability that a click ranks above a sample without one; ties count half
  std::optional<double> calibration;  // predicted clicks / clicks
  std::optional<double>
      normalized_entropy;  // log_loss / that of a model that always predicts the mean label (He et al.:
                           // "Practical lessons from predicting clicks on ads at Facebook", 2014)
};
// Converts to the metrics that a run reports: null for those that are not defined. Their quality is the AUC, or
// 1 / (1 + log_loss) where that is not defined.
Metrics to_metrics(ClickMetrics const& metrics);

// The predicted probability and the label of a sample.
struct Prediction {
  float probability, label;
  bool operator==(Prediction const&) const = default;
};

// Returns the area under the ROC curve. A label between 0 and 1 counts as that share of a click. A probability of NaN
// ranks below all others. Returns nothing if all labels are equal. Sorts its argument.
std::optional<double> area_under_curve(std::vector<Prediction>& predicted);

// Collects the predictions of one rank, and computes metrics over all ranks.
class PredictionCollector {
 public:
  // piece: the most predictions that a rank sends in one allgather.
  explicit PredictionCollector(std::size_t piece = std::size_t{1} << 20) : piece_(piece) {}

  // Adds samples. losses: in units of 2^-30.
  void add(std::span<float const> probabilities, std::span<float const> labels, std::span<std::int64_t const> losses);
  bool empty() const { return predicted_.empty(); }

  // Returns the metrics of the predictions of all ranks, and clears the collector. Meanwhile every rank holds all
  // predictions, 8 bytes each. Collective call.
  ClickMetrics wait_metrics(Store& store);

 private:
  std::vector<Prediction> wait_all(Store& store);

  std::size_t piece_;
  std::vector<Prediction> predicted_;
  std::int64_t loss_ = 0;
};

}  // namespace gpups::trainer
