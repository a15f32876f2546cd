// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other before anything else: the seed and the options of their tables. What rows and keys look
// like on their way follows from these, so ranks with other ones would read each other's bytes wrongly.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/table_shard.hpp"

namespace gpups::cache {

using Tables = std::vector<std::unique_ptr<TableShard>>;

std::string encode_tables(std::uint64_t seed, Tables const& tables);

// Throws PeerError that names both ranks and their values where another rank's tables are not like these.
void check_same_tables(Rank me, std::uint64_t seed, Tables const& tables, Rank from, std::string const& told);

}  // namespace gpups::cache
