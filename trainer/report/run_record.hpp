// SPDX-License-Identifier: Apache-2.0
// What the folder of a run says about it: configuration, metrics and summary.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::trainer::report {

// The files of a run's folder. A run that is in progress, or was interrupted, has no summary of its last step.
struct RunRecord {
  std::filesystem::path folder;
  Config config;
  std::vector<nlohmann::json> reports;      // lines with a loss; steps ascend
  std::vector<nlohmann::json> validations;  // lines with metrics of the valid split; steps ascend
  nlohmann::json summary;                   // null: there is none, or lines of metrics.jsonl are later
  bool locked = false;

  std::size_t ranks() const;
  // Returns the host of each rank; empty if all are on one host, or the run was of a version that did not write it.
  std::vector<std::size_t> hosts() const;
  // Returns the last value of a key that both the summary and reports may have; null if none has it.
  nlohmann::json last(char const* key) const;
};

// Reads a run's folder. Skips the last line of metrics.jsonl if it is incomplete. Throws Error if a file is missing or
// cannot be understood, with the number of the line in metrics.jsonl.
RunRecord read_run(std::filesystem::path const& folder);

}  // namespace gpups::trainer::report
