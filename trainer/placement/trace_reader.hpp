// SPDX-License-Identifier: Apache-2.0
// Reads the placement trace of all ranks of a run.
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/placement/trace_format.hpp"

namespace gpups::trainer {

struct PlacementTrace {
  TraceDescription description;
  std::vector<std::vector<std::vector<TracedPart>>> steps;  // steps[s][r]: the batch of rank r in step first_step + s
};

// Reads the files of all ranks. folder: of the run, or its placement_trace. Throws Error with the file and the reason
// if the folder or a file is missing, is not regular, was changed or cut, or has no end, as after a run that was
// killed; or if the files are of different runs.
PlacementTrace read_placement_trace(std::filesystem::path const& folder);

}  // namespace gpups::trainer
