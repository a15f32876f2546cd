// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/run_record.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>

#include "kernels/check.hpp"
#include "trainer/run_folder_lock.hpp"

namespace gpups::trainer::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns the object in a text; nullopt if the text is not a JSON object.
std::optional<json> object_in(std::string const& text) {
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  return parsed;
}

std::int64_t step_of(json const& line) { return line.at("step").get<std::int64_t>(); }

// Adds a line. A run that was resumed writes some steps again: the later line counts.
void add(std::vector<json>& lines, json line) {
  while (!lines.empty() && step_of(lines.back()) >= step_of(line)) lines.pop_back();
  lines.push_back(std::move(line));
}

void read_metrics(fs::path const& file, RunRecord& run) {
  std::ifstream in(file);
  GPUPS_REQUIRE(in.good(), "{} cannot be read (a report is made of its lines): give the folder of a run",
                file.string());
  std::size_t line_number = 0;
  std::optional<std::size_t> bad;
  for (std::string text; std::getline(in, text);) {
    GPUPS_REQUIRE(!bad, "line {} of {} is no JSON object of a step (only the last line may be incomplete): remove it",
                  *bad, file.string());
    ++line_number;
    auto line = object_in(text);
    if (!line || !line->contains("step") || !line->at("step").is_number_integer()) {
      bad = line_number;
    } else if (line->contains("loss")) {
      add(run.reports, std::move(*line));
    } else if (line->contains("valid")) {
      add(run.validations, std::move(*line));
    }
  }
  GPUPS_REQUIRE(!run.reports.empty(),
                "{} has no complete line with a loss (nothing has been reported yet): wait for run.report_every steps",
                file.string());
}

// Returns the summary of the last step; null if there is none.
json read_summary(fs::path const& file, json const& last_line) {
  std::ifstream in(file);
  if (!in.good()) return nullptr;
  auto summary = object_in({std::istreambuf_iterator<char>(in), {}});
  GPUPS_REQUIRE(summary && summary->contains("steps") && summary->at("steps").is_number_integer(),
                "{} is no summary of a run (it is not a JSON object with steps): restore it, or move it away",
                file.string());
  bool const is_current = summary->at("steps").get<std::int64_t>() >= step_of(last_line);
  return is_current ? std::move(*summary) : nullptr;
}

}  // namespace

std::size_t RunRecord::ranks() const { return last("received").size(); }

json RunRecord::last(char const* key) const {
  if (summary.contains(key)) return summary.at(key);
  return reports.back().value(key, json());
}

RunRecord read_run(fs::path const& folder) {
  RunRecord run;
  run.folder = folder;
  fs::path const config = folder / "config.toml";
  GPUPS_REQUIRE(fs::exists(config), "{} does not exist (every run writes it): give the folder of a run",
                config.string());
  run.config = load_config(config);
  run.locked = RunFolderLock::is_locked(folder);
  read_metrics(folder / "metrics.jsonl", run);
  run.summary = read_summary(folder / "summary.json", run.reports.back());
  return run;
}

}  // namespace gpups::trainer::report
