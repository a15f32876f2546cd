// SPDX-License-Identifier: Apache-2.0
// What can be done with a run that has left a checkpoint: evaluate it, and look at what it has learnt.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/cursor.hpp"
#include "trainer/dataset.hpp"
#include "trainer/ranking.hpp"

namespace gpups::trainer {

struct SavedRun {
  std::filesystem::path folder;
  Saved saved;
  Dataset data;

  std::filesystem::path checkpoint() const { return folder / "checkpoint"; }
};

// Reads the configuration from the checkpoint, with overrides, and the data from where it was.
// Throws Error where the data has changed since.
SavedRun open_run(std::filesystem::path const& folder, std::vector<Override> const& overrides);

// Ranks a split, "valid" or "test", with the rows of the checkpoint. Collective.
RankingMetrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split);

// For each name, a line of its name, and one for each of its `count` nearest neighbours.
std::string nearest_in_run(SavedRun const& run, std::vector<std::string> const& names, std::size_t count);

}  // namespace gpups::trainer
