// SPDX-License-Identifier: Apache-2.0
// A run from its configuration to its summary.
#pragma once

#include <filesystem>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

struct TrainOptions {
  std::filesystem::path folder;  // of the run
  bool resume = false;           // go on from the checkpoint in the folder, where there is one
};

// Trains one rank of a group; every rank calls it with the same arguments. Rank 0 writes the run's folder and tells
// about progress on stderr. Returns false where a signal ended the run early; it is saved, and can be resumed.
bool train(Config const& config, Data const& data, Group const& group, TrainOptions const& options);

}  // namespace gpups::trainer
