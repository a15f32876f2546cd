// SPDX-License-Identifier: Apache-2.0
// Bytes and messages that the ranks of a run have sent, and their JSON form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

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

}  // namespace gpups::trainer
