// SPDX-License-Identifier: Apache-2.0
// Whether all ranks see the same. Every rank calls each of these, in the same order; rank 0's findings get what
// differs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/transport/control_channel.hpp"
#include "trainer/doctor/facts.hpp"
#include "trainer/doctor/finding.hpp"

namespace gpups::tools {

void wait_compare_settings(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run,
                           trainer::Findings& mine);
void wait_compare_data(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run,
                       trainer::Findings& mine);
// folder: of the run, as rank 0 has made it.
void wait_compare_folder(comm::ControlChannel& channel, std::string const& folder, trainer::Findings& mine);

// "rank 2", "ranks 0-3,7"
std::string ranks_text(std::vector<int> const& ranks);

}  // namespace gpups::tools
