// SPDX-License-Identifier: Apache-2.0
// What a run did between two lines of metrics.jsonl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gpups::trainer::report {

// Numbers by name: "moved_rows", and those of objects with a point: "sent.moves", "stage_seconds.pull".
class Counters {
 public:
  Counters() = default;
  // Reads a line of metrics.jsonl, or summary.json.
  explicit Counters(nlohmann::json const& line);

  // Returns a number; 0 if there is none.
  double of(std::string const& name) const;
  Counters& operator+=(Counters const& other);
  // Returns the difference to an earlier line. Counters restart when a run is resumed: then it is this line.
  Counters since(Counters const& earlier) const;

 private:
  std::map<std::string, double> numbers_;
};

// The steps first + 1 .. last.
struct Interval {
  std::int64_t first = 0, last = 0;
  double loss = 0;           // mean over samples
  double samples_per_s = 0;  // mean over steps
  Counters counts;

  double steps() const { return static_cast<double>(last - first); }
  double per_step(std::string const& name) const { return counts.of(name) / steps(); }
};

// Returns the intervals between lines with a loss. Joins neighbours until there are at most `most`. The few steps
// between the end of an epoch and the next line are joined with those before: messages are counted when they are sent,
// which can be a step earlier or later.
std::vector<Interval> intervals_of(std::vector<nlohmann::json> const& reports, std::size_t most);

// Returns what the run did in all steps. summary: null if there is none.
Counters total_of(std::vector<nlohmann::json> const& reports, nlohmann::json const& summary);

// Bytes that ranks sent for the rows of batches, compared with rows at their homes. docs/run_folder.md explains the
// estimate.
struct HomeEstimate {
  double bytes_per_row = 0;  // a value and a gradient

  double at_homes(Counters const& counts) const { return bytes_per_row * counts.of("remote_home_keys"); }
  static double sent(Counters const& counts);
};
// Returns the estimate for a run; nullopt if no row was fetched from another rank.
std::optional<HomeEstimate> estimate_of(Counters const& counts);

}  // namespace gpups::trainer::report
