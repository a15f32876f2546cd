// SPDX-License-Identifier: Apache-2.0
// Says before a run what would go wrong in it, and how to mend it.
#pragma once

#include "tools/command_line.hpp"

namespace gpups::tools {

// Prints one line for each finding. Under a launcher every rank calls it; rank 0 prints what all have found, and the
// ranks look together at what one alone cannot see. Returns the status to exit with: 0 where there is no problem, 2
// where there is one.
int wait_doctor(CommandLine const& line);

}  // namespace gpups::tools
