// SPDX-License-Identifier: Apache-2.0
// Findings of one or many ranks, as lines.
#pragma once

#include <string>
#include <vector>

#include "trainer/doctor/finding.hpp"

namespace gpups::trainer {

// "warning: /dev/shm has ...", on one line.
std::string line_of(Finding const& finding, std::string const& whose = {});

// A finding, and the ranks that have it, ascending.
struct SharedFinding {
  Finding finding{};
  std::vector<int> ranks{};
};
// Equal findings once, in the order in which the ranks have them. findings: of each rank.
std::vector<SharedFinding> merged(std::vector<Findings> const& findings);

bool has_problem(Findings const& findings);

// As text for another rank, and back. Throws Error for other text.
std::string serialize(Findings const& findings);
Findings deserialize(std::string const& text);

}  // namespace gpups::trainer
