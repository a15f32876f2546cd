// SPDX-License-Identifier: Apache-2.0
// Counters of the ranks of a benchmark at two moments between steps, and what they counted per step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gpups/store.hpp"

namespace gpups::bench {

// Returns this rank's counters when all ranks have completed the steps before store.clock(). Other ranks do not start
// the next step before. Collective.
inline Stats wait_stats(Store& store) {
  store.wait_applied();
  store.wait_barrier();
  Stats stats = store.stats();
  store.wait_barrier();
  return stats;
}

// The counters of one rank before and after some steps.
struct CountedSteps {
  Stats before, after;
};

// Returns the mean of a counter per rank and step. counter(Stats) -> number.
template <class Counter>
double mean_per_step(std::vector<CountedSteps> const& ranks, std::int64_t steps, Counter counter) {
  double sum = 0;
  for (auto const& [before, after] : ranks) sum += static_cast<double>(counter(after) - counter(before));
  return sum / static_cast<double>(ranks.size()) / static_cast<double>(steps);
}

// Returns a counter per step of the rank that counted most.
inline double most_per_step(std::vector<CountedSteps> const& ranks, std::int64_t steps, std::uint64_t Stats::*counter) {
  std::uint64_t most = 0;
  for (auto const& [before, after] : ranks) most = std::max(most, after.*counter - before.*counter);
  return static_cast<double>(most) / static_cast<double>(steps);
}

// Returns the bytes that a rank sends in a step, by kind, as the mean over ranks and steps.
inline nlohmann::ordered_json sent_per_step(std::vector<CountedSteps> const& ranks, std::int64_t steps) {
  auto const mean = [&](std::uint64_t TrafficByKind::*kind) {
    return mean_per_step(ranks, steps, [kind](Stats const& stats) { return stats.sent.*kind; });
  };
  return {{"gradients", mean(&TrafficByKind::gradients)}, {"refreshes", mean(&TrafficByKind::refreshes)},
          {"intents", mean(&TrafficByKind::intents)},     {"late_fetches", mean(&TrafficByKind::late_fetches)},
          {"moves", mean(&TrafficByKind::moves)},         {"control", mean(&TrafficByKind::control)}};
}

}  // namespace gpups::bench
