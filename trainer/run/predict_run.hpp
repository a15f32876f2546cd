// SPDX-License-Identifier: Apache-2.0
// Predicts with the model of a run: probabilities of clicks, or ratings; and recommends items.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {

// Calls `take` with a number for each sample of `file`, in order and some at a time: see SavedClicks::predict() and
// SavedRatings::predict(). Adds notices about the file to `notices`. Throws Error if the run has no checkpoint or its
// model does not predict, and for an invalid sample.
void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take, TaskKinds kinds = task_kinds());

// Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores,
// without those that the user chose in training. Throws Error if the run has no interactions, or training has not seen
// such a user.
std::string recommend_in_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                             std::vector<std::string> const& users, std::size_t count, TaskKinds kinds = task_kinds());

}  // namespace gpups::trainer
