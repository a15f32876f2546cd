// SPDX-License-Identifier: Apache-2.0
// The rows that batches use in a step. Columns of all tables; no function waits, and the numbers of launches do not
// depend on the numbers of tables and ranks.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// The announced uses of a step, in the ascending order of table, key and rank. A rank may have a use several times.
struct UseRun {
  View<Key const> keys;             // (uses)
  View<std::uint16_t const> ranks;  // (uses)
};

// Writes the rank of each sorted use. Unsorted, the uses of each list are one after another.
struct RankUses {
  struct UsesOfRank {
    std::uint32_t uses, rank;
  };
  std::span<UsesOfRank const> lists;
  View<std::uint32_t const> positions;  // (uses): of the sorted uses among the unsorted ones
  View<std::uint16_t> ranks;            // (uses)
};
void rank_uses(Stream& stream, RankUses const& arguments);

// Lists the distinct keys of each table of a run: `keys` and `heads`, the number of its first use, at first_use + i for
// the i-th key of the table.
struct ListUsedKeys {
  struct RunOfTable {
    std::uint32_t first_use, uses;
  };
  std::span<RunOfTable const> tables;
  View<Key const> uses;        // the keys of the run
  View<Key> keys;              // (uses)
  View<std::uint32_t> heads;   // (uses)
  View<std::uint32_t> counts;  // (tables): the numbers of distinct keys
};
void list_used_keys(Stream& stream, ListUsedKeys const& arguments);

// A table with its distinct keys, which are rows first .. of the columns, and its uses in the run.
struct UsedTable {
  std::uint32_t first = 0, size = 0;
  std::uint32_t first_use = 0, uses = 0;
};

}  // namespace gpups::kernels
