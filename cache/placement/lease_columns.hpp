// SPDX-License-Identifier: Apache-2.0
// The columns of a batch that is divided (divided_rows.hpp), and the lists that its rows and the records of leases are
// in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/placement/divided_rows.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/placement/lease_records.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

// The records of the leases of a table.
struct LeasedTable {
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;
  kernels::KeyIndex index;
  kernels::RowStorage<std::uint64_t> records;  // by the key's number in the index; see lease_records.hpp
  std::size_t leases = 0;
};

// The rows of all parts are numbered together, the parts of a table one after another.
struct UndividedColumns {
  std::vector<std::size_t> by_table;     // the parts
  std::vector<std::uint32_t> first_row;  // of each part
  std::vector<bool> has_repeats;         // of each table: it has several parts
  std::uint32_t rows = 0;
  Array<Key> keys{};
  Array<std::uint32_t> ids{};       // of records, or kNoRow; see ReplicaLeases
  Array<std::uint32_t> first_of{};  // see kernels::FirstRows
  Array<std::uint32_t> occurrences{};
  Array<std::uint32_t> place_of_row{};  // among the announced rows of the table
};
// Puts the rows of all parts one after another. Queued on the stream.
UndividedColumns join_parts(Stream& stream, std::span<UndividedPart const> parts, std::size_t tables);

// The items of all lists.
struct LeaseListItems {
  kernels::LeaseLists of{};
  kernels::LeaseItems at{};
  std::vector<std::uint32_t> first_record{};  // of each table, among the records of all tables
  Array<std::uint32_t> items{};
  std::vector<std::uint32_t> first{};          // of each list
  Array<std::uint32_t> place_of_item{};        // of announced rows
  std::vector<View<std::uint32_t>> new_ids{};  // of each table: the records of new rows
  Array<std::uint32_t> new_ids_memory{};

  std::uint32_t size(std::uint32_t list, std::uint32_t lists = 1) const { return first[list + lists] - first[list]; }
  View<std::uint32_t const> items_of(std::uint32_t list, std::uint32_t lists = 1) const {
    return items.view().slice(first[list], size(list, lists));
  }
  // Returns the item of a table's first record.
  std::uint32_t record_item(std::uint32_t table) const {
    return static_cast<std::uint32_t>(at.records_at()) + first_record[table];
  }
};

// Write the announced rows, and what each part does with its rows. step: as for LeaseRecord; me: the rank. Queued on
// the stream.
void list_announced(Stream& stream, std::span<LeasedTable const> tables, UndividedColumns const& batch,
                    LeaseListItems& lists, std::uint64_t step, std::uint32_t me, DividedRows& divided);
void list_uses(Stream& stream, std::span<UndividedPart const> parts, UndividedColumns const& batch,
               LeaseListItems const& lists, DividedRows& divided);

}  // namespace gpups::cache
