// SPDX-License-Identifier: Apache-2.0
// A trained click-through model that predicts: its rows in a store, its layers on this rank.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/click/click_computation.hpp"
#include "trainer/click/click_model.hpp"
#include "trainer/dense_layers.hpp"

namespace gpups::trainer {

struct Predictions {
  std::vector<float> probabilities;  // (n)
  std::vector<std::int64_t> losses;  // (n), in units of 2^-30, given the samples' labels
};

class ClickPredictor {
 public:
  // `model` and `dense` must stay.
  ClickPredictor(ClickModel const& model, DenseLayers const& dense) : model_(model), dense_(dense) {}

  // With the rows that the store has now; inserts and counts nothing. Waits. Not collective, but see Store::lookup.
  Predictions wait_predict(Stream& stream, Store& store, SampleBatch const& samples);

 private:
  ClickModel const& model_;
  DenseLayers const& dense_;
  ClickComputation computation_{model_};
};

}  // namespace gpups::trainer
