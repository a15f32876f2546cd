// SPDX-License-Identifier: Apache-2.0
// A trained click-through model from the checkpoint of a run, without its training data: to predict, and to export.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/input/table_layout.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/click/click_predictor.hpp"

namespace gpups::trainer {

// The model of a checkpoint, on this rank alone.
class SavedClicks {
 public:
  // Loads tables and layers. REQUIRES: a run on click data.
  explicit SavedClicks(SavedModel const& model);

  // Reads samples of the run's layout from a file, text or binary, and calls `take` with the probabilities of clicks,
  // in order and some at a time. Labels must be present, but have no effect. Adds notices about the file to `notices`.
  void predict(std::filesystem::path const& file, std::vector<std::string>& notices,
               std::function<void(std::span<float const>)> const& take);

  // Writes to a new folder all that another program needs to predict: rows/, see Store::export_rows(); dense/, with an
  // array in the same format for each parameter of layers; model.json, which describes the model and gives the columns
  // of a block; and, if model.min_count is set, frequent_values.bin, which has keys of 64 bits.
  void write(std::filesystem::path const& folder, ExportFormat format);

 private:
  nlohmann::ordered_json description() const;

  SavedState saved_;
  std::unique_ptr<ClickModel> model_;
  std::unique_ptr<DenseLayers> dense_;
  SameColumns columns_;  // of the training files, unless they are binary and without names
  SampleStatistics statistics_;
  FrequentValues frequent_;
  std::unique_ptr<Store> store_;
};

}  // namespace gpups::trainer
