// SPDX-License-Identifier: Apache-2.0
#include "trainer/trials/search_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "trainer/saved/run_folder.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> lines_of(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

SearchRecord::SearchRecord(fs::path const& folder, json const& what) : path_(folder / "search.jsonl") {
  if (fs::exists(path_)) remove_incomplete_line(path_);
  std::vector<std::string> const lines = lines_of(path_);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      json const line = json::parse(lines[i]);
      if (i == 0) {
        GPUPS_REQUIRE(line == what,
                      "{} is of a search with another configuration (results of different searches cannot be "
                      "compared): use the same configuration and options, or another folder",
                      path_.string());
      } else if (!line.value("environment", false)) {
        results_[{line.at("trial").get<std::int64_t>(), line.at("budget").get<std::int64_t>()}] = {
            .quality = line.value("quality", 0.0), .text = line.value("text", ""), .error = line.value("error", "")};
      }
    } catch (json::exception const& error) {
      throw Error(fmt::format("{}:{} is damaged ({}): remove the line, and its trial runs again", path_.string(), i + 1,
                              error.what()));
    }
  }
  out_.open(path_, std::ios::binary | std::ios::app);
  if (lines.empty()) out_ << what.dump() + "\n" << std::flush;
  require_written();
}

void SearchRecord::require_written() const {
  GPUPS_REQUIRE(out_.good(),
                "{} cannot be written (the results of the search are there): free space on the disk or choose another "
                "folder, and use --resume",
                path_.string());
}

TrialResult const* SearchRecord::find(std::int64_t trial, std::int64_t budget) const {
  auto const found = results_.find({trial, budget});
  return found == results_.end() ? nullptr : &found->second;
}

void SearchRecord::add(std::int64_t trial, std::int64_t budget, TrialResult const& result) {
  json line{{"trial", trial}, {"budget", budget}};
  if (result.has_failed()) {
    line["error"] = result.error;
    if (result.of_environment) line["environment"] = true;
  } else {
    line.update({{"quality", result.quality}, {"text", result.text}});
  }
  // A trial's error may quote data that is not UTF-8.
  out_ << line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n" << std::flush;
  require_written();
  results_[{trial, budget}] = result;
}

std::map<std::int64_t, TrialResult> SearchRecord::of(std::int64_t trial) const {
  std::map<std::int64_t, TrialResult> found;
  for (auto const& [key, result] : results_) {
    if (key.first == trial) found[key.second] = result;
  }
  return found;
}

std::vector<std::string> SearchRecord::failures_of_environment() const {
  std::vector<std::string> failures;
  for (auto const& [key, result] : results_) {
    if (result.of_environment) failures.push_back(fmt::format("trial {}: {}", key.first, result.error));
  }
  return failures;
}

std::vector<std::int64_t> best_trials(SearchRecord const& record, std::vector<std::int64_t> const& trials,
                                      std::int64_t budget, std::size_t count) {
  std::vector<std::int64_t> good;
  for (std::int64_t const trial : trials) {
    TrialResult const* const result = record.find(trial, budget);
    if (result != nullptr && !result->has_failed()) good.push_back(trial);
  }
  std::stable_sort(good.begin(), good.end(), [&](std::int64_t a, std::int64_t b) {
    return record.find(a, budget)->quality > record.find(b, budget)->quality;
  });
  good.resize(std::min(good.size(), count));
  return good;
}

}  // namespace gpups::trainer
