// SPDX-License-Identifier: Apache-2.0
// What the home of rows knows about their owners: an entry for each row that is away, by the number of its key in the
// home's index.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The words of an entry: the owner, the reason, and the step since when, in two words; and the same of before.
inline constexpr std::size_t kOwnerWords = 8;

// What is known about the rows of a list in a step, in 4 words for each: owner, reason, since. Rows without a number
// are at home.
struct ReadEntries {
  Rows<std::uint32_t const> entries;
  View<std::uint32_t const> ids;  // (n), or kNoRow
  View<std::uint32_t> out;        // (n) owners, may be `ids`; or (4 * n), if all words are read
};
// step: at least the one before the step that was planned last. Queued on `stream`.
void read_owners(Stream& stream, std::span<ReadEntries const> lists, Rank home, Clock step);
void read_entries(Stream& stream, std::span<ReadEntries const> lists, Rank home, Clock step);

// Lists the rows of which the chosen owner is not the owner before: `moved`, their numbers in the columns of rows, and
// the ids and keys of these. counts: (3, tables): of these rows; of those without a number; and by how many more rows
// with a number are at home, modulo 2^32.
struct MovedRows {
  std::uint32_t first = 0, size = 0;  // the rows of a table
  View<std::uint32_t> moved, ids;     // (size)
  View<Key> keys;                     // (size)
};
struct ListMoved {
  std::span<MovedRows const> tables;
  View<Key const> keys;
  View<std::uint32_t const> ids, owners, chosen;
  Rank home{};
  View<std::uint32_t> counts;
};
void list_moved(Stream& stream, ListMoved const& arguments);

// Writes where rows are from step `since` on; before, they are where they were. The entries of new rows have no
// contents.
struct MoveEntries {
  Rows<std::uint32_t> entries;
  View<std::uint32_t const> moved;  // (n), see MovedRows
  View<std::uint32_t const> ids;    // (n): of the rows
};
struct PlanMoves {
  std::span<MoveEntries const> tables;
  View<std::uint32_t const> known_ids;  // of all rows, before new ones got numbers
  View<std::uint32_t const> owners, chosen;
  Rank home{};
  Clock since{};
};
void plan_moves(Stream& stream, PlanMoves const& arguments);

// Writes what is known about rows, now and before.
struct SetEntries {
  Rows<std::uint32_t> entries;
  View<std::uint32_t const> ids;    // (n), distinct
  View<std::uint32_t const> words;  // (4 * n): see ReadEntries
};
void set_entries(Stream& stream, SetEntries const& arguments);

// Lists the ids of rows that are at home since a step before `step`: (n) at most. Returns their number. Waits.
struct ListReturned {
  Rows<std::uint32_t const> entries;
  View<std::uint32_t const> ids;  // (n)
  View<std::uint32_t> returned;   // (n)
  Rank home{};
  Clock step{};
};
std::size_t wait_list_returned(Stream& stream, ListReturned const& arguments);

}  // namespace gpups::kernels
