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
  int ranks_here = 1;            // of this process: what they take together is to fit its memory
};

// Throws Error where what a rank's task will take, times the ranks of this process, is more than there is: call it once
// in the process, before train() is called.
void require_memory_for(Config const& config, Data const& data, Group const& group, int ranks_here);

// Trains one rank of a group; every rank calls it with the same arguments. Rank 0 writes the run's folder and tells
// about progress on stderr. Returns false where a signal ended the run early; it is saved, and can be resumed.
bool train(Config const& config, Data const& data, Group const& group, TrainOptions const& options);

}  // namespace gpups::trainer
