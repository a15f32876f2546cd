// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run have sent each other, and how it is written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// Over all ranks.
struct TrafficReport {
  Traffic sent;
  TrafficByKind saved_bytes;
  std::vector<std::uint64_t> received;  // bytes that all others sent it, by rank; their sum is that of `sent`

  // Bytes sent and saved (Stats::saved_bytes) for each that was sent; 1 where nothing was.
  double compression_ratio() const;
  // The same of each kind; of those alone of which bytes were sent, as nothing is a multiple of none.
  nlohmann::json compression_ratio_by_kind() const;
  // The most that a rank has received, over the mean; 1 where nothing was. Owners that have more than their share of
  // the work delay all.
  double receive_imbalance() const;
};

// Those of a rank, as numbers of which the sum over the ranks is that of all, and back.
std::vector<std::int64_t> to_terms(Stats const& mine);
TrafficReport from_sums(std::span<std::int64_t const> sums);

// {"gradients": bytes, ..., "messages": count}
nlohmann::json to_json(Traffic const& traffic);
// {"gradients": seconds, "update": ...}
nlohmann::json to_json(RoundSeconds const& seconds);
// {"sent": ..., "saved_bytes": {"gradients": bytes, ...}, "received": [...], "receive_imbalance": ...,
// "compression_ratio": ..., "compression_ratio_by_kind": {"gradients": ..., ...}}
nlohmann::json to_json(TrafficReport const& traffic_report);

// [{"from": 0, "to": 1, "bytes": {"gradients": ...}, "messages": {...}}, ...]: what each rank sent to each other one,
// of kinds that were sent at all. Collective; for rank 0, the others get none.
nlohmann::json wait_pairs(Store& store, Stats const& mine);

}  // namespace gpups::trainer
