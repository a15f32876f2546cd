// SPDX-License-Identifier: Apache-2.0
// What can be done with a run that has left a checkpoint: evaluate it, and look at what it has learnt.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/session.hpp"
#include "trainer/task.hpp"
#include "trainer/trainer_state.hpp"

namespace gpups::trainer {

struct SavedRun {
  std::filesystem::path folder;
  SavedState saved;
  std::unique_ptr<Data const> data;

  std::filesystem::path checkpoint() const { return folder / "checkpoint"; }
  RunPlan plan() const { return {saved.state.microbatches, saved.state.schedule_steps}; }
};

// Reads the configuration from the checkpoint, with overrides, and the data from where it was.
// Throws Error where the data has changed since.
SavedRun open_run(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides);

// Evaluates a split, "valid" or "test", with the rows and layers of the checkpoint. Collective.
Metrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split);

// For each name, a line of its name, and one for each of its `count` nearest neighbours.
std::string nearest_in_run(SavedRun const& run, std::vector<std::string> const& names, std::size_t count);

}  // namespace gpups::trainer
