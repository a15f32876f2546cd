// SPDX-License-Identifier: Apache-2.0
// A trained factorization from the checkpoint of a run, without its training data: to predict, and to export.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/ratings/rating_predictor.hpp"

namespace gpups::trainer {

// The model of a checkpoint, on this rank alone.
class SavedRatings {
 public:
  // Loads the tables. REQUIRES: a run on ratings.
  explicit SavedRatings(SavedModel const& model);

  // Reads lines of a row id and a column id, and calls `take` with the predicted ratings, in order and some at a time.
  // What follows the ids is ignored, and so is a heading, for which a notice is added to `notices`. Throws Error for an
  // invalid line.
  void predict(std::filesystem::path const& file, std::vector<std::string>& notices,
               std::function<void(std::span<float const>)> const& take);

  // Writes to a new folder all that another program needs to predict: rows/, see Store::export_rows(), whose keys are
  // the ids in the data; and model.json, with the mean and the range of training ratings, and whether the last number
  // of a row is its bias.
  void write(std::filesystem::path const& folder, ExportFormat format);

 private:
  SavedState saved_;
  RatingScale scale_;
  SameColumns columns_;  // of the training files
  std::unique_ptr<Store> store_;
};

}  // namespace gpups::trainer
