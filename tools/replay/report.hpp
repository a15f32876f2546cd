// SPDX-License-Identifier: Apache-2.0
// What replay prints: the bytes, the memory and the time of a replayed run, and how far policies scale.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "tools/replay/replayed_run.hpp"

namespace gpups::tools {

// The model of a step's time, in seconds. Its parts follow each other, and a step computes nothing.
struct StepTime {
  double node = 0, network = 0, link = 0;  // receiving values, gradients and rows; link: the slower of both
  double messages = 0;                     // to every other rank and from it, in both phases
  double planning = 0;                     // of a home
  double all() const { return link + messages + planning; }
  // Returns the longest part: "node", "network", "messages" or "planning".
  char const* limit() const;
};
StepTime step_time(ReplayCommand const& options, ReplayedRun const& run);

// Samples per second of all ranks.
struct ReplayedSpeed {
  int ranks = 0;
  double samples_per_s = 0;
};
// Returns the number of ranks from which on each doubling gains less than kGainLeast; nothing if the last one gains
// more. speeds: by ranks, ascending.
constexpr double kGainLeast = 1.5;
std::optional<int> scaling_end(std::span<ReplayedSpeed const> speeds);

// Returns one line of the output. samples: of all ranks in a step.
nlohmann::ordered_json to_json(ReplayCommand const& options, ReplayedRun const& run, double samples);

}  // namespace gpups::tools
