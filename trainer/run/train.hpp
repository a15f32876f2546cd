// SPDX-License-Identifier: Apache-2.0
// Trains a model: a whole run, from its configuration to its summary.
#pragma once

#include <filesystem>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// Options of a run that are not in its configuration.
struct TrainOptions {
  std::filesystem::path folder;   // of the run
  bool resume = false;            // resume from the checkpoint in the folder, if there is one
  int ranks_here = 1;             // number of ranks of this process, which share its memory
  double seconds_of_process = 0;  // time of this process before train(), for the total that is printed at the end
};

// Throws Error if the tasks of all ranks of this process need more memory than is free. Call it once in a process,
// before train().
void require_memory_for(Config const& config, Data const& data, Group const& group, int ranks_here);

// Trains one rank of a group. Every rank calls it with the same arguments. Rank 0 writes the run's folder, and its
// progress to stderr. Returns false if a signal ended the run early; the run is saved and can be resumed.
// If a run is resumed that has finished, its files stay as they are.
bool train(Config const& config, Data const& data, Group const& group, TrainOptions const& options);

}  // namespace gpups::trainer
