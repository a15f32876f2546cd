// SPDX-License-Identifier: Apache-2.0
// What a run measures, over all ranks, and how it is written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "gpups/gpups.hpp"
#include "trainer/stage_times.hpp"
#include "trainer/traffic_report.hpp"

namespace gpups::trainer {

// Since the last report; integers, so that their sum over ranks has no order.
struct IntervalStats {
  std::int64_t loss = 0;  // in units of 2^-30
  std::int64_t samples = 0;
  double seconds = 0;  // of training, on this rank

  double loss_mean() const;
  double samples_per_s() const;
};

// Sums `mine` and the traffic over the ranks. Collective.
struct Totals {
  IntervalStats interval;
  TrafficReport traffic_report;
};
Totals wait_totals(Store& store, IntervalStats const& mine, Stats const& stats);

// {"prepare": seconds, ...}
nlohmann::json to_json(StageTimes const& times);
// {"process": bytes, "host": bytes, "device": bytes}: the most memory so far of this process, and of the library in it.
nlohmann::json peak_memory(Device device);

}  // namespace gpups::trainer
