// SPDX-License-Identifier: Apache-2.0
// Measurements of a run over all ranks, and their JSON form: bytes and messages, keys and rows, times and losses.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/accounts/stage_times.hpp"

namespace gpups::trainer {

// Bytes and messages that the ranks of a run have sent, and their JSON form.

// The traffic of all ranks.
struct TrafficReport {
  Traffic sent;
  TrafficByKind saved_bytes;
  std::vector<std::uint64_t> received;  // bytes that each rank was sent; they add up to the bytes of `sent`

  // Returns (sent + saved bytes) / sent bytes, see Stats::saved_bytes; 1 if nothing was sent.
  double compression_ratio() const;
  // Returns the same for each kind that was sent.
  nlohmann::json compression_ratio_by_kind() const;
  // Returns the most bytes that a rank was sent over the mean of all ranks; 1 if nothing was sent. An owner with more
  // than its share of the work delays all ranks.
  double receive_imbalance() const;
};

// Converts a rank's counters to integers that can be summed over the ranks, and the sums to a report.
std::vector<std::int64_t> to_terms(Stats const& mine);
TrafficReport from_sums(std::span<std::int64_t const> sums);

// Returns {"gradients": bytes, ..., "messages": count}.
nlohmann::json to_json(Traffic const& traffic);
// Returns {"gradients": seconds, "update": ...}.
nlohmann::json to_json(RoundSeconds const& seconds);
// Returns {"sent": ..., "saved_bytes": {"gradients": bytes, ...}, "received": [...], "receive_imbalance": ...,
// "compression_ratio": ..., "compression_ratio_by_kind": {"gradients": ..., ...}}.
nlohmann::json to_json(TrafficReport const& traffic_report);

// Returns the traffic of each pair of ranks, without kinds that were not sent:
// [{"from": 0, "to": 1, "bytes": {"gradients": ...}, "messages": {...}}, ...]. Only rank 0 gets it; other ranks get an
// empty array. Blocks. Collective.
nlohmann::json wait_pairs(Store& store, Stats const& mine);

// How many keys and rows the ranks of a run have used, fetched and moved, and their JSON form.

// Counters of all ranks, as in Stats.
struct RowReport {
  std::uint64_t entries = 0, distinct_keys = 0, remote_keys = 0, remote_home_keys = 0, late_keys = 0, late_batches = 0,
                moved_rows = 0, leased_keys = 0, leased_steps = 0;
  std::vector<std::uint64_t> owned_rows{};  // by each rank
};

// Converts a rank's counters to integers that can be summed over the ranks, and the sums to counters of all ranks.
std::vector<std::int64_t> row_terms(Stats const& mine, Rank me);
RowReport row_report_from(std::span<std::int64_t const> sums);

// Returns {"entries": ..., "distinct_keys": ..., ..., "owned_rows": [...]}.
nlohmann::json to_json(RowReport const& counts);

// Returns the most used rows of all ranks, those with the most uses first, for rank 0; other ranks get an empty array:
// [{"table": "words", "key": 7, "owner": 1, "home": 0, "reason": "policy", "since": 12, "uses": [0, 16]}, ...].
// Blocks. Collective.
nlohmann::json wait_hottest_rows(Store& store, std::size_t count);

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
