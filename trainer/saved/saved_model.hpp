// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: before their tables are loaded, and with the rows on this rank alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/saved/trainer_state.hpp"
#include "trainer/step/session.hpp"

namespace gpups::trainer {

// A checkpoint whose blobs have been read.
struct SavedModel {
  std::filesystem::path run;  // the folder of its run
  std::filesystem::path checkpoint;
  std::vector<Blob> blobs;
  SavedState saved;

  // Returns whether the model of the best validation was kept, and this is another one.
  bool is_not_best() const { return saved.state.best.step != 0 && saved.state.best.step != saved.state.clock; }
};

// Returns the checkpoint of a run with the most steps, from which training resumes, or nothing if the run has none.
// kinds: of tasks; see parse_config().
std::optional<SavedModel> latest_checkpoint(std::filesystem::path const& run, TaskKinds kinds);

// Opens the model of a run: that of the best validation if train.keep_best kept it, else the latest. overrides:
// settings that do not change the model, for instance run.device; train.keep_best = false opens the latest. Throws
// Error if there is no checkpoint, or if a setting changes the model.
SavedModel open_model(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides, TaskKinds kinds);

class RestoredModel {
 public:
  // Creates the task and the store, and loads the checkpoint. `data` must outlive this object. Throws Error if the data
  // is not that of the run. Blocks.
  RestoredModel(SavedModel const& model, Data const& data);

  Store& store() { return session_.store; }

 private:
  Session session_;
};

// Returns whether a file of this format has vectors and names, and nothing else.
bool is_word2vec(ModelFormat format);
// Returns the format of arrays. REQUIRES: !is_word2vec(format).
ExportFormat array_format(ModelFormat format);
// Returns the text of model.json: what the rows belong to, and the whole configuration.
std::string description_of(SavedModel const& model);

}  // namespace gpups::trainer
