// SPDX-License-Identifier: Apache-2.0
// The schema check: before any other message, ranks exchange the store's seed and the options of their tables. The wire
// format of rows and keys depends on these, so ranks with different ones could not decode each other's messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/rows/table_shard.hpp"

namespace gpups::cache {

// Returns the body of a kSchema message.
std::string encode_schema(std::uint64_t seed, TableShards const& tables);

// Throws PeerError if the schema of rank `from` differs, with both ranks and both values, or if it is invalid.
void check_schema(Rank me, std::uint64_t seed, TableShards const& tables, Rank from, std::string const& schema);

}  // namespace gpups::cache
