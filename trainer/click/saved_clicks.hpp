// SPDX-License-Identifier: Apache-2.0
// A trained click-through model as a run has left it, without the data that it was trained on: to predict with, and to
// take elsewhere.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/click/click_predictor.hpp"
#include "trainer/config.hpp"
#include "trainer/trainer_state.hpp"

namespace gpups::trainer {

class SavedClicks {
 public:
  // Loads the checkpoint of a run. overrides: of settings that say how this program runs. Throws Error where there is
  // none, or where it is of another kind of model.
  SavedClicks(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides);

  // Reads samples of the run's layout from a file, text or binary, and gives the probabilities of clicks, in order and
  // some at a time. Labels must be there, and have no effect. Notices of bad lines are added to `notices`.
  void predict(std::filesystem::path const& file, std::vector<std::string>& notices,
               std::function<void(std::span<float const>)> const& take);

  // Writes all that another program needs to predict to a new folder: rows/ as Store::export_rows() does, dense/ with
  // an array for each parameter of layers in the same format, model.json, which says what they are and where the rows
  // of a category are in a block, and frequent_values.bin, keys of 64 bits, where model.min_count is set.
  void write(std::filesystem::path const& folder, ExportFormat format);

 private:
  SavedClicks(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides,
              std::vector<Blob> const& blobs);
  nlohmann::ordered_json description() const;

  SavedState saved_;
  std::unique_ptr<ClickModel> model_;
  std::unique_ptr<DenseLayers> dense_;
  SampleStatistics statistics_;
  FrequentValues frequent_;
  std::unique_ptr<Store> store_;
};

}  // namespace gpups::trainer
