// SPDX-License-Identifier: Apache-2.0
// Formats the findings of one or more ranks as lines of text.
#pragma once

#include <string>
#include <vector>

#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {

// Returns one line, such as "warning: /dev/shm has ...". whose: the ranks, for example "rank 3"; may be empty.
std::string line_of(Finding const& finding, std::string const& whose = {});

// A finding, and the ranks that have it, in ascending order.
struct SharedFinding {
  Finding finding{};
  std::vector<int> ranks{};
};
// Merges equal findings, in the order of their first occurrence. findings: of each rank.
std::vector<SharedFinding> merged(std::vector<Findings> const& findings);

// Returns what the findings of all ranks say together, for the last line. worst: their highest level.
Finding verdict(Finding::Level worst);
// Returns the highest level of the findings, or `before` if that is higher.
Finding::Level worst_of(Findings const& findings, Finding::Level before = Finding::Level::kOk);

// Converts findings to text that can be sent to another rank, and back. deserialize() throws Error for invalid text.
std::string serialize(Findings const& findings);
Findings deserialize(std::string const& text);

}  // namespace gpups::trainer
