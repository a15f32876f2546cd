// SPDX-License-Identifier: Apache-2.0
// What users do with the run of a trained model: evaluate it, find neighbours, export it, predict, and recommend items.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/config/task_kind.hpp"
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
// checkpoint, or if the data has changed. kinds, here and below: of tasks; see parse_config().
SavedRun open_run(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides,
                  TaskKinds kinds = task_kinds());

// Evaluates a split, "valid" or "test", with the model of the checkpoint. Blocks. Collective.
Metrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split);

// Returns text: for each name, a line with the name and a line for each of its `count` nearest neighbours. Names
// that training has not seen, or that have no rows, are no neighbours and are left out, and a notice says so. Throws
// Error if the run has no entities, or training has seen none of the names.
std::string nearest_in_run(SavedRun const& run, std::vector<QueriedName> const& names, std::size_t count,
                           std::vector<std::string>& notices);

// Returns the format with a name: npy, flat, word2vec or word2vec-binary. Throws Error for another name.
ModelFormat model_format(std::string_view name);

// Writes the rows of a run's checkpoint to `folder`/rows, and the other files that a program needs to use them (see
// TaskKind::export_model() and the document of the kind of task). The formats of word2vec have one file instead,
// vectors.txt or vectors.bin. run: folder of the run. folder: must not exist, or be empty. Throws Error if the run has
// no valid checkpoint, the model has no vectors for word2vec, or the folder cannot be written. Returns sentences about
// names that training has not seen, which are left out of vectors.
std::vector<std::string> export_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                                    std::filesystem::path const& folder, ModelFormat format,
                                    TaskKinds kinds = task_kinds());

// Calls `take` with a number for each sample of `file`, in order and some at a time; see TaskKind::predict(). Adds
// notices about the file to `notices`. Throws Error if the run has no checkpoint or its model does not predict, and for
// an invalid sample.
void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take, TaskKinds kinds = task_kinds());

// Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores,
// without those that the user chose in training. Users that training has not seen are left out, and a notice says so.
// Throws Error if the run has no interactions, or training has seen none of the users.
std::string recommend_in_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                             std::vector<QueriedName> const& users, std::size_t count,
                             std::vector<std::string>& notices, TaskKinds kinds = task_kinds());
// Reads the users of recommend_in_run(), one in each line. Skips empty lines.
std::vector<QueriedName> read_users(std::filesystem::path const& file);

}  // namespace gpups::trainer
