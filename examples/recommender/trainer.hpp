// SPDX-License-Identifier: Apache-2.0
// The training loop of one rank: batches on their way, and the step.
#pragma once

#include <cstdint>
#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"
#include "model.hpp"
#include "serve.hpp"
#include "tables.hpp"

// One rank's sums over impressions. Losses are in units of 2^-30: sums of integers have no order, so every number of
// ranks prints the same digits.
struct Progress {
  std::int64_t loss = 0;   // of the model
  std::int64_t least = 0;  // of the planted probabilities: no model can have a smaller one
  std::int64_t clicks = 0, impressions = 0;
  std::int64_t requests = 0;  // answered meanwhile

  void add(Impression const& impression, float logit);
};

// The same over all ranks, per impression.
struct Report {
  double loss = 0, least = 0;
  double base = 0;  // of a model that knows the share of clicks only
  std::size_t requests = 0;
  std::size_t rows = 0;    // of all tables
  std::size_t places = 0;  // that are taken in memory, by keys that wait for admission and forgotten rows too

  // 1: as good as the truth; 0: as if there were no users and items.
  double learnt() const { return (base - loss) / (base - least); }
};
// Collective.
Report wait_report(gpups::Store& store, Progress const& mine);

class Trainer {
 public:
  // What is referred to must stay.
  Trainer(gpups::Group const& group, gpups::Store& store, Model& model);

  // Trains up to step `end`, answering requests as they come. `signal`: for all ranks to see, see Store::advance_clock.
  Progress train_until(gpups::Clock end, std::uint32_t (*signal)());

 private:
  // One rank's part of a step's impressions.
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
