// SPDX-License-Identifier: Apache-2.0
// The results of a search so far. A line is added for each stage of a trial, so a search that was killed goes on where
// it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpups::trainer {

// The end of one stage of a trial.
struct TrialResult {
  double quality = 0;           // larger is better
  std::string text{};           // the metrics of the validation
  std::string error{};          // why the trial failed, or empty
  bool of_environment = false;  // see tools/trials/trial_process.hpp
  bool has_failed() const { return !error.empty(); }
};

// The file search.jsonl in the folder of a search.
class SearchRecord {
 public:
  // Opens the file, or creates it with a first line `what`, which describes the search. Throws Error if the file is of
  // another search, has a damaged line, or cannot be written. A last line without its end was not completely written
  // and is removed. Failures of the environment do not count as results: these trials run again.
  SearchRecord(std::filesystem::path const& folder, nlohmann::json const& what);

  // Returns the result of a trial's stage, or null.
  TrialResult const* find(std::int64_t trial, std::int64_t budget) const;
  void add(std::int64_t trial, std::int64_t budget, TrialResult const& result);
  // Returns the results of a trial by budget.
  std::map<std::int64_t, TrialResult> of(std::int64_t trial) const;
  // Returns the failures of the environment since the file was opened.
  std::vector<std::string> failures_of_environment() const;

 private:
  void require_written() const;

  std::filesystem::path path_;
  std::map<std::pair<std::int64_t, std::int64_t>, TrialResult> results_;  // by trial and budget
  std::ofstream out_;
};

// Returns the trials of `trials` with the best results at `budget`, `count` at most; failed ones are left out. Of equal
// ones the first is better.
std::vector<std::int64_t> best_trials(SearchRecord const& record, std::vector<std::int64_t> const& trials,
                                      std::int64_t budget, std::size_t count);

}  // namespace gpups::trainer
