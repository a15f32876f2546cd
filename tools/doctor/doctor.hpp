// SPDX-License-Identifier: Apache-2.0
// Finds problems before a run, and prints how to solve them.
#pragma once

#include "tools/command_line.hpp"

namespace gpups::tools {

// Prints one line for each finding. Under a launcher every rank calls it: the ranks do joint checks too, and rank 0
// prints the findings of all ranks. Returns the exit status: 0 without a problem, else 2.
int wait_doctor(CommandLine const& line);

}  // namespace gpups::tools
