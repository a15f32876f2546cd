// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "kernels/base/check.hpp"
#include "trainer/saved/run_folder_lock.hpp"
#include "trainer/tasks/task_kinds.hpp"

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

bool is_number(json const& value) { return value.is_number(); }
bool has_named_numbers(json const& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), is_number);
}
bool has_numbers(json const& value) { return value.is_array() && std::all_of(value.begin(), value.end(), is_number); }

// A value of a line with a loss.
struct ReportValue {
  char const* key;
  bool (*is_valid)(json const&);
};
constexpr ReportValue kReportValues[] = {{"loss", is_number},         {"samples_per_s", is_number},
                                         {"sent", has_named_numbers}, {"received", has_numbers},
                                         {"owned_rows", has_numbers}, {"stage_seconds", has_named_numbers},
                                         {"entries", is_number},      {"distinct_keys", is_number},
                                         {"remote_keys", is_number},  {"remote_home_keys", is_number},
                                         {"late_keys", is_number},    {"moved_rows", is_number}};

// Returns what is wrong with a line that is a JSON object; nothing if gpu_train can have written it.
std::string why_damaged(json const& line) {
  bool const has_step = line.contains("step") && line.at("step").is_number_integer() && step_of(line) >= 1;
  if (!has_step) return "'step' is not a whole number above 0";
  bool const is_report = line.contains("loss");
  if (!is_report && line.contains("valid")) return line.at("valid").is_object() ? "" : "'valid' has a wrong type";
  if (!is_report && (line.contains("progressive") || line.contains("rows_forgotten"))) return "";
  for (auto const& [key, is_valid] : kReportValues) {
    if (!line.contains(key)) return fmt::format("'{}' is missing", key);
    if (!is_valid(line.at(key))) return fmt::format("'{}' has a wrong type", key);
  }
  return line.value("pairs", json::array()).is_array() ? "" : "'pairs' has a wrong type";
}

void read_metrics(fs::path const& file, RunRecord& run) {
  std::ifstream in(file);
  GPUPS_REQUIRE(in.good(), "{} cannot be read (a report is made of its lines): give the folder of a run",
                file.string());
  std::size_t line_number = 0;
  for (std::string text; std::getline(in, text);) {
    ++line_number;
    auto line = object_in(text);
    if (!line && in.eof()) break;  // the run is writing it, or was killed
    std::string const damage = line ? why_damaged(*line) : "it is not a JSON object";
    GPUPS_REQUIRE(damage.empty(),
                  "line {} of {} is damaged ({}), or of another version of gpups: restore the file, or remove the line",
                  line_number, file.string(), damage);
    if (line->contains("loss")) {
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

std::vector<std::size_t> RunRecord::hosts() const {
  std::vector<std::size_t> of_ranks;
  auto const counts = last("ranks_per_host");
  if (!counts.is_array() || counts.size() < 2) return of_ranks;
  for (std::size_t host = 0; host < counts.size(); ++host) {
    auto const count = counts[host].get<std::size_t>();
    GPUPS_REQUIRE(count <= ranks() - of_ranks.size(),
                  "ranks_per_host of the run adds up to more than its {} ranks (each rank is on one host): restore the "
                  "files that gpu_train wrote",
                  ranks());
    of_ranks.resize(of_ranks.size() + count, host);
  }
  GPUPS_REQUIRE(of_ranks.size() == ranks(),
                "ranks_per_host of the run adds up to {} of its {} ranks (each rank is on one host): restore the files "
                "that gpu_train wrote",
                of_ranks.size(), ranks());
  return of_ranks;
}

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
