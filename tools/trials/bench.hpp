// SPDX-License-Identifier: Apache-2.0
// The command bench: trains a configuration with several seeds, and prints its test beside what others published.
#pragma once

#include "tools/command_line.hpp"

namespace gpups::tools {

// Runs or resumes a benchmark, and prints its table. Throws Error for an invalid configuration, missing data, and if a
// run fails.
void run_bench(CommandLine const& line);

}  // namespace gpups::tools
