// SPDX-License-Identifier: Apache-2.0
// The training loop of one rank: batches on their way, and the step.
#pragma once

#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "serve.hpp"
#include "tables.hpp"

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
