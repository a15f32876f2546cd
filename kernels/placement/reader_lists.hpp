// SPDX-License-Identifier: Apache-2.0
// What a reader makes of the routes of its batch: lists of the positions of rows, by their owners. The rows of all
// parts are numbered together, those of a part one after another, and the parts of a table too.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/row_owners.hpp"

namespace gpups::kernels {

// The rows of a part that have one home, with their owners; without a column, these are the home, or those before.
struct RoutedRows {
  View<std::uint32_t const> positions;       // (n): in the part
  View<Key const> keys;                      // of the part
  View<std::uint8_t const> before, in_step;  // (n * bytes of a rank), or empty
  std::uint32_t home = 0;
};
// Writes the columns of all rows. wrong: (homes): whether the owner of one of the rows does not exist.
struct ReadRoutes {
  std::span<RoutedRows const> homes;  // of each part, in the order of the rows
  std::uint32_t ranks = 0, rank_bytes = 1;
  View<std::uint32_t> positions, owners;  // (rows); owners: see RowOwners
  View<Key> keys;
  View<std::uint32_t> wrong;
};
void read_routes(Stream& stream, ReadRoutes const& arguments);

// The lists of a part: for each owner before the step that sends values, and that passes rows to this rank; rows that
// arrive with another part; rows that this rank owns before the step, first those that leave; rows that it owns in the
// step; and for each other owner in the step. Rows that get numbers although nothing arrives for them (placed) are
// those of two lists, and so are the rows that this rank owns before the step.
constexpr std::uint32_t reads_list(std::uint32_t owner) { return owner; }
constexpr std::uint32_t arriving_list(std::uint32_t ranks, std::uint32_t owner) { return ranks + owner; }
constexpr std::uint32_t repeated_list(std::uint32_t ranks) { return 2 * ranks; }
constexpr std::uint32_t leaving_list(std::uint32_t ranks) { return 2 * ranks + 1; }
constexpr std::uint32_t staying_list(std::uint32_t ranks) { return 2 * ranks + 2; }
constexpr std::uint32_t local_list(std::uint32_t ranks) { return 2 * ranks + 3; }
constexpr std::uint32_t updates_list(std::uint32_t ranks, std::uint32_t owner) { return 2 * ranks + 4 + owner; }
constexpr std::uint32_t lists_of_part(std::uint32_t ranks) { return 3 * ranks + 4; }
constexpr std::uint32_t placed_lists(std::uint32_t ranks) { return repeated_list(ranks); }  // the first of two
constexpr std::uint32_t owned_lists(std::uint32_t ranks) { return leaving_list(ranks); }    // the first of two

// Writes the lists of rows, for partition_items(): two for each row, one after another for all rows. differ: (parts):
// whether a row moves between other ranks, or away, so that gradients go to other ranks than values come from.
struct ListRows {
  struct RowRange {
    std::uint32_t first = 0, size = 0;
  };
  std::span<RowRange const> tables, parts;  // of the rows
  View<Key const> sorted;                   // (rows): ascending in each table
  View<std::uint32_t const> order;          // (rows): the numbers of the sorted rows
  View<std::uint32_t const> owners;         // (rows)
  std::uint32_t ranks = 0, me = 0;
  View<std::uint32_t> list_of;  // (2 * rows)
  View<std::uint32_t> differ;
};
void list_rows(Stream& stream, ListRows const& arguments);

// taken[i] = positions[order[items[i] % rows]], of items below 2 * rows
struct TakePositions {
  // A list of a part whose order does not matter: a host sorts it, and then reads what belongs to it in order.
  struct Unordered {
    std::uint32_t first, size;  // of `taken`
    std::uint32_t rows;         // of the part: positions are below
  };
  View<std::uint32_t const> items, order, positions;
  View<std::uint32_t> taken;
  std::span<Unordered const> unordered{};  // on the host; used only during the call
};
void take_positions(Stream& stream, TakePositions const& arguments);

// Late fetches are answered by each owner for each home by itself. Writes the list of each value of a part, for
// partition_items(): owner * ranks + home.
struct ListAnswers {
  View<std::uint32_t const> items;  // (values): of the reads_list() of all owners
  View<std::uint32_t const> order, owners;
  View<Key const> keys;  // (rows)
  std::uint32_t ranks = 0;
  View<std::uint32_t> list_of;  // (values)
};
void list_answers(Stream& stream, ListAnswers const& arguments);

}  // namespace gpups::kernels
