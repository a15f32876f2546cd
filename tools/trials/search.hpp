// SPDX-License-Identifier: Apache-2.0
// The command search: trains with drawn settings, gives the better ones more time, and prints a table.
#pragma once

#include "tools/command_line.hpp"

namespace gpups::tools {

// Runs or resumes a search, and prints its table. If a signal stops it, saves the trials that run. Throws Error for an
// invalid configuration, and if every trial failed.
void run_search(CommandLine const& line);

}  // namespace gpups::tools
