// SPDX-License-Identifier: Apache-2.0
// The training loop of one rank: prepared batches, steps, and metrics.
#pragma once

#include <cstdint>
#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"
#include "model.hpp"
#include "serve.hpp"
#include "tables.hpp"

// Metrics of predictions that were made before their impressions were used for training, summed on one rank. Losses are
// in units of 2^-30: sums of integers do not depend on the order, so the report is the same for every number of ranks.
struct Progress {
  std::int64_t loss = 0;   // of the model
  std::int64_t least = 0;  // of the true probabilities: the smallest possible loss
  std::int64_t clicks = 0, impressions = 0;
  std::int64_t requests = 0;  // answered

  // Adds an impression, and the model's logit for it.
  void add(Impression const& impression, float logit);
};

// The metrics of all ranks. Losses are means over impressions.
struct Report {
  double loss = 0, least = 0;
  double base = 0;  // of a model that always predicts the share of clicks
  std::size_t requests = 0;
  std::size_t rows = 0;    // of all tables
  std::size_t places = 0;  // places of rows in memory, also of expired rows and of keys that wait for admission

  // 1: as good as the true probabilities; 0: as good as the share of clicks.
  double learnt() const { return (base - loss) / (base - least); }
};
// Returns the report of all ranks. Collective call.
Report wait_report(gpups::Store& store, Progress const& mine);

// Trains the model, and answers requests meanwhile.
class Trainer {
 public:
  // `store` and `model` must outlive this object.
  Trainer(gpups::Group const& group, gpups::Store& store, Model& model);

  // Trains up to step `end`, and answers requests. `signal` is called in each step; see Store::advance_clock().
  Progress train_until(gpups::Clock end, std::uint32_t (*signal)());

 private:
  // The impressions of a step that this rank computes.
  struct VisitBatch {
    std::vector<Impression> impressions;
    Rows rows;
    gpups::PreparedBatch prepared;
  };
  VisitBatch prepare(gpups::Clock clock);
  void train_step(VisitBatch const& batch, std::uint32_t signal, Progress& progress);
  std::vector<Scoring> begin_serving();
  void pull(VisitBatch const& batch);
  void forward_backward(VisitBatch const& batch, Progress& progress);
  void push(VisitBatch const& batch);

  gpups::Group group_;
  gpups::Store& store_;
  gpups::Stream stream_;
  Model& model_;
  gpups::Matrix<float> values_[kTables], gradients_[kTables];  // (impressions, kDims[table])
  gpups::Array<std::int64_t> sums_;                            // of dense gradients, (Model::size())
};
