// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run have sent each other, and how it is written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// Over all ranks.
struct Exchanged {
  Traffic sent;
  ByKind spared;
  std::vector<std::uint64_t> received;  // bytes that all others sent it, by rank; their sum is that of `sent`

  // Bytes sent and spared (Stats::spared) for each that was sent; 1 where nothing was.
  double compression() const;
  // The same of each kind; of those alone of which bytes were sent, as nothing is a multiple of none.
  nlohmann::json compression_by_kind() const;
  // The most that a rank has received, over the mean; 1 where nothing was. Owners that have more than their share of
  // the work delay all.
  double received_max_over_mean() const;
};

// Those of a rank, as numbers of which the sum over the ranks is that of all, and back.
std::vector<std::int64_t> to_terms(Stats const& mine);
Exchanged from_sums(std::span<std::int64_t const> sums);

// {"gradients": bytes, ..., "messages": count}
nlohmann::json to_json(Traffic const& traffic);
// {"in": seconds, "apply": ...}
nlohmann::json to_json(RoundSeconds const& seconds);
// {"sent": ..., "spared": {"gradients": bytes, ...}, "received": [...], "received_max_over_mean": ...,
// "compression": ..., "compression_by_kind": {"gradients": ..., ...}}
nlohmann::json to_json(Exchanged const& exchanged);

// [{"from": 0, "to": 1, "bytes": {"gradients": ...}, "messages": {...}}, ...]: what each rank sent to each other one,
// of kinds that were sent at all. Collective; for rank 0, the others get none.
nlohmann::json wait_pairs(Store& store, Stats const& mine);

}  // namespace gpups::trainer
