// SPDX-License-Identifier: Apache-2.0
// The commands that train many times: search trains with drawn settings, gives the better ones more time, and prints a
// table; bench trains with several seeds and prints a table beside published results.
#pragma once

#include "tools/command_line.hpp"

namespace gpups::tools {

// Runs or resumes a search, and prints its table. If a signal stops it, saves the trials that run. Throws Error for an
// invalid configuration, and if every trial failed.
void run_search(CommandLine const& line);

// Runs or resumes a benchmark, and prints its table. Throws Error for an invalid configuration, missing data, and if a
// run fails.
void run_bench(CommandLine const& line);

}  // namespace gpups::tools
