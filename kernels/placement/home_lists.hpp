// SPDX-License-Identifier: Apache-2.0
// What a home makes of the owners of rows: the lists of each owner, and the routes of each reader.
//
// The uses of a step are those of used_rows.hpp. Unsorted, those of a part of a batch are one after another, with
// ascending keys.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/row_owners.hpp"
#include "kernels/placement/used_rows.hpp"

namespace gpups::kernels {

// Writes the owners of the row of each use. placed: (uses), unsorted; see RowOwners.
struct PlaceUses {
  UseRun run;
  View<std::uint32_t const> positions;  // (uses): see RankUses
  std::span<UsedTable const> tables;
  View<std::uint32_t const> heads, owners, chosen;  // of rows: before the step, and in it
  View<std::uint32_t> placed;
};
void place_uses(Stream& stream, PlaceUses const& arguments);

// The uses of a part of a reader's batch. The rows of owner q with role r are in list
// q * lists_of_owner + first_list + r * parts.
struct PartUses {
  std::uint32_t uses = 0, reader = 0, first_list = 0, parts = 0;
};
// Writes the lists of uses, for partition_items(): list_of[u] for what the owner before the step does with the row, and
// list_of[uses + u] for the owner in it, if it gets only the gradient. away: (parts, 2): whether this home does not own
// a row before the step, and whether a row moves in it.
struct ListUses {
  std::span<PartUses const> parts;
  View<std::uint32_t const> placed;
  std::uint32_t home = 0, lists_of_owner = 0;
  View<std::uint32_t> list_of;  // (2 * uses)
  View<std::uint32_t> away;
};
void list_uses(Stream& stream, ListUses const& arguments);

// to[i] = keys[items[i] % keys.size()]
void take_keys(Stream& stream, View<Key const> keys, View<std::uint32_t const> items, View<Key> to);

// A part's owners before the step, and in it: a number for each use, or none.
struct PartRoute {
  std::uint32_t first_use = 0, uses = 0;
  View<std::uint8_t> before{}, in_step{};  // (uses * bytes of a rank), or empty
};
struct WriteRoutes {
  std::span<PartRoute const> parts;
  View<std::uint32_t const> placed;
  std::uint32_t rank_bytes = 1;  // 1 or 2
};
void write_routes(Stream& stream, WriteRoutes const& arguments);

// Keys that a rank has forwarded as their home.
struct KeysOfHome {
  View<Key const> keys;
  std::uint32_t home = 0, table = 0;
};
// foreign[l] = the first place in list l with a key of another home, or kNoRow.
void find_foreign(Stream& stream, std::span<KeysOfHome const> lists, std::uint32_t homes, View<std::uint32_t> foreign);

}  // namespace gpups::kernels
