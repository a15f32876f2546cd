// SPDX-License-Identifier: Apache-2.0
// Predicts with a trained click-through model: its rows are in a store, its layers on this rank.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/dense/dense_layers.hpp"
#include "trainer/tasks/click/model/click_computation.hpp"
#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

// Predictions for n samples.
struct Predictions {
  std::vector<float> probabilities;  // (n)
  std::vector<std::int64_t> losses;  // (n), in units of 2^-30, with the labels of the samples
};

// Computes predictions, with memory that is reused from call to call. One thread at a time.
class ClickPredictor {
 public:
  // `model` and `dense` must outlive this object.
  ClickPredictor(ClickModel const& model, DenseLayers const& dense) : model_(model), dense_(dense) {}

  // Predicts with the rows that the store has now; inserts and counts nothing. Blocks until the predictions are on the
  // host. Not a collective call, but see Store::lookup().
  Predictions wait_predict(Stream& stream, Store& store, SampleBatch const& samples);

 private:
  ClickModel const& model_;
  DenseLayers const& dense_;
  ClickComputation computation_{model_};
};

}  // namespace gpups::trainer
