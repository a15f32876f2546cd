// SPDX-License-Identifier: Apache-2.0
// Opens a run that has a checkpoint, evaluates it, and finds the nearest neighbours of its entities.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/saved/trainer_state.hpp"
#include "trainer/step/session.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {

// A run that was loaded from its folder, and its data.
struct SavedRun {
  std::filesystem::path folder;
  std::filesystem::path checkpoint;  // see open_model()
  SavedState saved;
  std::unique_ptr<Data const> data;

  RunPlan plan() const { return {saved.state.microbatches, saved.state.schedule_steps}; }
};

// Reads the configuration from the checkpoint, applies overrides, and reads the data. Throws Error if there is no
// checkpoint, or if the data has changed.
SavedRun open_run(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides,
                  TaskKinds kinds = task_kinds());

// Evaluates a split, "valid" or "test", with the model of the checkpoint. Blocks. Collective.
Metrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split);

// Returns text: for each name, a line with the name and a line for each of its `count` nearest neighbours. Throws Error
// if the run has no entities, or none with such a name.
std::string nearest_in_run(SavedRun const& run, std::vector<std::string> const& names, std::size_t count);

}  // namespace gpups::trainer
