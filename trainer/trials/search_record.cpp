// SPDX-License-Identifier: Apache-2.0
#include "trainer/trials/search_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "kernels/check.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns the lines of a file that end with a line break. One that does not was not completely written.
std::vector<std::string> whole_lines(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  std::string const text = all.str();
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

}  // namespace

SearchRecord::SearchRecord(fs::path const& folder, json const& what) : path_(folder / "search.jsonl") {
  std::vector<std::string> const lines = whole_lines(path_);
  std::string kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      json const line = json::parse(lines[i]);
      if (i == 0) {
        GPUPS_REQUIRE(line == what,
                      "{} is of a search with another configuration (results of different searches cannot be "
                      "compared): use the same configuration and options, or another folder",
                      path_.string());
      } else {
        results_[{line.at("trial").get<std::int64_t>(), line.at("budget").get<std::int64_t>()}] = {
            .quality = line.value("quality", 0.0),
            .text = line.value("text", ""),
            .valid = line.value("valid", json()),
            .error = line.value("error", "")};
      }
    } catch (json::exception const& error) {
      throw Error(fmt::format("{}:{} is damaged ({}): remove the line, and its trial runs again", path_.string(), i + 1,
                              error.what()));
    }
    kept += lines[i] + "\n";
  }
  if (lines.empty()) kept = what.dump() + "\n";
  // Without the incomplete line.
  fs::path const beside = path_.string() + ".new";
  std::ofstream(beside, std::ios::binary) << kept;
  std::error_code error;
  fs::rename(beside, path_, error);
  out_.open(path_, std::ios::binary | std::ios::app);
  GPUPS_REQUIRE(!error && out_.good(), "{} cannot be written (a search keeps its results there): choose another folder",
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
  } else {
    line.update({{"quality", result.quality}, {"text", result.text}, {"valid", result.valid}});
  }
  out_ << line.dump() + "\n" << std::flush;
  GPUPS_REQUIRE(out_.good(),
                "{} cannot be written (the result would be lost): free space on the disk, and run the "
                "search again with --resume",
                path_.string());
  results_[{trial, budget}] = result;
}

std::map<std::int64_t, TrialResult> SearchRecord::of(std::int64_t trial) const {
  std::map<std::int64_t, TrialResult> found;
  for (auto const& [key, result] : results_) {
    if (key.first == trial) found[key.second] = result;
  }
  return found;
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
