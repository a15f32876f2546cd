// SPDX-License-Identifier: Apache-2.0
// What follows from the lists of plan_leases.hpp: the announced rows, leases that begin, and the uses of each part; and
// what happens to records after a step.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/lease_records.hpp"

namespace gpups::kernels {

// to[i] = items[i] - first.
struct ItemNumbers {
  View<std::uint32_t const> items;  // (n)
  std::uint32_t first = 0;
  View<std::uint32_t> to;  // (n)
};
void item_numbers(Stream& stream, std::span<ItemNumbers const> lists);

// Writes the keys and the occurrences of announced rows. Rows that are due count as refreshed.
struct AnnounceRows {
  // A list of a table and a home: `size` items from `items_at` on, which become the announced rows from `to` on.
  struct ListOfRows {
    std::uint32_t items_at = 0, size = 0, to = 0, first_of_table = 0;
    bool is_due = false, is_earlier = false;  // kDueEarlier
    std::uint32_t first_record = 0;           // the item of the table's first record
    Rows<std::uint64_t> records{};
    Rows<std::uint64_t const> index_keys{};
  };
  std::span<ListOfRows const> lists;
  std::uint64_t step = 0;
  View<std::uint32_t const> items;
  View<Key const> row_keys;                   // (rows)
  View<std::uint32_t const> row_occurrences;  // (rows)
  View<Key> keys;                             // (announced)
  View<std::uint32_t> occurrences;            // (announced)
  View<std::uint32_t> place_of_row;           // (rows): places among the announced rows of the table
  View<std::uint32_t> place_of_item;          // (announced): the same, by item
};
void announce_rows(Stream& stream, AnnounceRows const& arguments);

// Begins the leases of the first `granted` items of a list, and writes records of new rows.
struct BeginLeases {
  struct LeasesOfList {
    Rows<std::uint64_t> records{};
    View<std::uint32_t const> items{};   // (n)
    View<std::uint32_t const> order{};   // (n), or empty: the items in their order
    View<std::uint32_t const> places{};  // those of rows, or of the items of this list
    View<std::uint32_t const> ids{};     // records of rows; of this list's rows, if `is_new`; or empty, for records
    std::uint32_t first = 0;             // the item of row 0, or of the table's first record
    std::uint32_t granted = 0;
    bool is_new = false;
    View<std::uint32_t> begun{};  // (granted): the places of the announced rows
  };
  std::span<LeasesOfList const> lists;
  std::uint64_t step = 0, staleness = 0;
};
void begin_leases(Stream& stream, BeginLeases const& arguments);

// Writes the columns of the refreshed and the leased rows of parts.
struct DivideUses {
  struct DividedUses {
    View<std::uint32_t const> items{};  // (n)
    std::uint32_t first_item = 0;       // of the batch's rows
    std::uint32_t first_row = 0;        // of the part
    bool has_repeats = false;
    View<std::uint32_t> rows{};    // (n): rows of the part
    View<std::uint32_t> places{};  // (n): of refreshed rows among the announced rows of the table; or empty
    // Of leased rows:
    View<std::uint32_t> records{};  // (n), or empty
    View<std::uint32_t> entries{};  // (n)
    View<Key> keys{};               // (n)
  };
  std::span<DividedUses const> parts;
  View<std::uint32_t const> first_of, place_of_row, ids, occurrences;  // (rows)
  View<Key const> row_keys;                                            // (rows)
};
void divide_uses(Stream& stream, DivideUses const& arguments);

// sums[i] = values[0] + ... + values[i - 1], modulo 2^32. sums: (n + 1).
struct RunningSums {
  View<std::uint32_t const> values;  // (n)
  View<std::uint32_t> sums;
};
void running_sums(Stream& stream, RunningSums const& arguments);

// Copies the elements of items.
struct OwnedUses {
  View<std::uint32_t const> items;  // (n)
  View<std::uint32_t const> ids, rows, entries;
  View<std::uint32_t> owned_ids, owned_rows;  // (n)
  View<std::int64_t> owned_entries;           // (n)
};
void owned_uses(Stream& stream, OwnedUses const& arguments);

// Counts gradients of leased uses in a step as applied, because this rank owns the rows.
struct AppliedUses {
  Rows<std::uint64_t> records;
  View<std::uint32_t const> ids;      // (n) or more; may have a record twice
  View<std::uint32_t const> entries;  // likewise
  View<std::uint32_t const> items;    // (n), in both
  std::uint32_t first_item = 0;       // of element 0
};
void count_applied(Stream& stream, std::span<AppliedUses const> lists, std::uint64_t step);

// pinned[i] = rows[i], or kNoRow if no planned lease ends in `step` or later.
struct LeasedRows {
  Rows<std::uint64_t const> records;
  View<std::uint32_t const> ids;   // (n), or kNoRow
  View<std::uint32_t const> rows;  // (n)
  View<std::uint32_t> pinned;      // (n)
};
void select_leased(Stream& stream, std::span<LeasedRows const> lists, std::uint64_t step);

// Changes records: ends their leases; makes them due, because their gradients were not applied; or ends leases and
// drops what waits.
enum class LeaseEnd : std::uint32_t { kClear, kRetry, kDrop };
struct EndLeases {
  Rows<std::uint64_t> records;
  View<std::uint32_t const> ids{};  // (size), distinct, or kNoRow; empty: all records
  std::uint32_t size = 0;
};
void end_leases(Stream& stream, std::span<EndLeases const> lists, LeaseEnd end);

}  // namespace gpups::kernels
