// SPDX-License-Identifier: Apache-2.0
// The checkpoint that has the model of a run, before its tables are loaded.
#pragma once

#include <filesystem>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/trainer_state.hpp"

namespace gpups::trainer {

// Returns the checkpoint with the model of a run: that of the best validation if train.keep_best kept one, else the
// last. Throws Error if the run has no checkpoint.
std::filesystem::path model_checkpoint(std::filesystem::path const& run);

// A checkpoint whose blobs have been read.
struct SavedModel {
  std::filesystem::path run;  // the folder of its run
  std::filesystem::path checkpoint;
  std::vector<Blob> blobs;
  SavedState saved;
};

// Opens the model of a run. overrides: settings that do not change the model, for instance run.device. Throws Error if
// there is no checkpoint, or if a setting changes the model.
SavedModel open_model(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides);

}  // namespace gpups::trainer
