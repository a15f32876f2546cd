// SPDX-License-Identifier: Apache-2.0
// Measurements of a run over all ranks, and their JSON form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "gpups/gpups.hpp"
#include "trainer/accounts/row_report.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/accounts/traffic_report.hpp"

namespace gpups::trainer {

// Counters since the last report. Loss and samples are integers, so their sum does not depend on the order of ranks.
struct IntervalStats {
  std::int64_t loss = 0;  // in units of 2^-30
  std::int64_t samples = 0;
  double seconds = 0;  // training time of this rank

  double loss_mean() const;
  double samples_per_s() const;
};

// Counters summed over all ranks.
struct Totals {
  IntervalStats interval;
  TrafficReport traffic_report;
  RowReport row_report;
};
// Sums `mine`, and the traffic and the keys in `stats`, over all ranks. Blocks. Collective.
Totals wait_totals(Store& store, IntervalStats const& mine, Stats const& stats);

// Returns {"prepare": seconds, ...}.
nlohmann::json to_json(StageTimes const& times);
// Returns the peak memory of this process and of the library in it: {"process": bytes, "host": bytes, "device": bytes}.
nlohmann::json peak_memory(Device device);

}  // namespace gpups::trainer
