// SPDX-License-Identifier: Apache-2.0
// What a benchmark trains: the section [bench] of a configuration. See docs/bench.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gpups::trainer {

// A result that others published.
struct PublishedResult {
  std::string source;
  std::map<std::string, double> metrics;  // by name
};

// The settings of [bench].
struct BenchPlan {
  std::string data;                  // what the data is, and where it comes from
  std::vector<std::string> metrics;  // of the test, as in summary.json
  std::vector<std::int64_t> seeds{1, 2, 3};
  std::vector<std::vector<std::string>> folds{
      {}};  // the settings of each, "section.key=value"; metrics are their means
  std::vector<PublishedResult> published;
};

// Reads [bench] of a configuration file. Throws Error, with file and line, for a key that is unknown, missing or of a
// wrong type.
BenchPlan load_bench_plan(std::filesystem::path const& file);

}  // namespace gpups::trainer
