// SPDX-License-Identifier: Apache-2.0
// Checks that settings, data and folder are the same on all ranks. Every rank calls these functions in the same order;
// differences are added to the findings of rank 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/transport/control_channel.hpp"
#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/facts.hpp"

namespace gpups::tools {

// Compares the settings that must be the same on all ranks.
void wait_compare_settings(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run,
                           trainer::Findings& mine);
// Compares digests of the training data.
void wait_compare_data(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run,
                       trainer::Findings& mine);
// Checks that all ranks can read a file that rank 0 writes to the run's folder. folder: on rank 0, which has made it.
void wait_compare_folder(comm::ControlChannel& channel, std::string const& folder, trainer::Findings& mine);

// Returns, for example, "rank 2" or "ranks 0-3,7".
std::string ranks_text(std::vector<int> const& ranks);

}  // namespace gpups::tools
