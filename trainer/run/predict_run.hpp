// SPDX-License-Identifier: Apache-2.0
// Predicts with the model of a run: probabilities of clicks, or ratings.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// Calls `take` with a number for each sample of `file`, in order and some at a time: see SavedClicks::predict() and
// SavedRatings::predict(). Adds notices about the file to `notices`. Throws Error if the run has no checkpoint or its
// model does not predict, and for an invalid sample.
void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take);

}  // namespace gpups::trainer
