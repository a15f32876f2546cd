// SPDX-License-Identifier: Apache-2.0
// How many keys and rows the ranks of a run have used, fetched and moved, and their JSON form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// Counters of all ranks, as in Stats.
struct RowReport {
  std::uint64_t entries = 0, distinct_keys = 0, remote_keys = 0, remote_home_keys = 0, late_keys = 0, moved_rows = 0,
                leased_keys = 0, leased_steps = 0;
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

}  // namespace gpups::trainer
