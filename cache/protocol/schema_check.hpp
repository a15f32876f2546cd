// SPDX-License-Identifier: Apache-2.0
// The schema check: before any other message, ranks exchange the options of the store and of its tables. The wire
// format of rows and keys depends on these, so ranks with different ones could not decode each other's messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/placement/policy.hpp"
#include "cache/rows/table_shard.hpp"

namespace gpups::cache {

// The options of a store that are equal on all ranks.
struct StoreSchema {
  std::uint64_t seed = 0;
  PlacementPolicy policy = PlacementPolicy::kStatic;
  std::int64_t staleness = 0;
  int placement_window = 16;
  std::int64_t placement_bytes_min = -1;
  int ranks_per_host = 0;
};

// Returns the body of a kSchema message. plain_keys: whether this rank sends plain keys to the receiver.
std::string encode_schema(StoreSchema const& store, TableShards const& tables, bool plain_keys);

// Throws PeerError if the schema of rank `from` differs, with both ranks and both values, or if it is invalid. Returns
// whether that rank sends plain keys to this one.
bool check_schema(Rank me, StoreSchema const& store, TableShards const& tables, Rank from, std::string const& schema);

}  // namespace gpups::cache
