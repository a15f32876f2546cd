// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other before anything else: the seed and the options of their tables. What rows and keys look
// like on their way follows from these, so ranks with other ones would read each other's bytes wrongly.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/table_shard.hpp"

namespace gpups::cache {

std::string encode_schema(std::uint64_t seed, TableShards const& tables);

// Throws PeerError that names both ranks and their values where another rank's tables are not like these.
void check_schema(Rank me, std::uint64_t seed, TableShards const& tables, Rank from, std::string const& schema);

}  // namespace gpups::cache
