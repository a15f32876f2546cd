// SPDX-License-Identifier: Apache-2.0
// Decides which rows of a batch are read from replicas as they are, which are announced, and which rows are announced
// because their gradients have waited. See lease_records.hpp.
//
// The rows of all parts are numbered together, those of a part one after another, and the parts of a table too.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/lease_records.hpp"

namespace gpups::kernels {

// first_of[r] = the first row of the table with the key of row r.
struct FirstRows {
  struct SortedRows {
    View<Key const> keys;                 // (n), ascending
    View<std::uint32_t const> positions;  // (n): the rows; those of equal keys are ascending
  };
  std::span<SortedRows const> tables;
  View<std::uint32_t> first_of;
};
void first_rows(Stream& stream, FirstRows const& arguments);

// The rows of a part that have one home.
struct RowsOfHome {
  Rows<std::uint64_t> records{};  // of the table
  std::uint32_t first = 0, size = 0;
  std::uint32_t table = 0, part = 0, home = 0;
  View<std::uint32_t const> offsets{};  // (size + 1), of the entries of rows; or empty, if they are not counted
  View<std::uint32_t const> owners{};   // (size), ranks; or empty: other ranks own the rows
  bool may_lease = true;                // otherwise all rows are announced, and need no record
  bool is_mine = false;                 // the home is this rank
  bool has_repeats = false;             // other parts of the table may have the same keys
};

// Numbers of steps: see LeaseRecord.
struct LeaseSteps {
  std::uint64_t step = 0, staleness = 0;
  std::uint64_t complete = 0;  // the last step that is complete
  bool refresh_all = false;    // no use is leased
  bool send_all = false;       // all gradients that wait are due
};

// The sums of the ages of leased uses, in steps, in several places; and 2^32 - 1 - the largest age.
inline constexpr std::size_t kAgeSums = 32;

// Plans the uses of rows. Rows whose home owns them, if it is this rank, get no new lease.
struct PlanLeases {
  std::span<RowsOfHome const> homes;
  LeaseLists lists;
  LeaseItems items;
  LeaseSteps steps;
  View<std::uint32_t const> ids;       // (rows): numbers of records, or kNoRow
  View<std::uint32_t const> first_of;  // (rows), of the parts that have repeats
  View<std::uint32_t> occurrences;     // (rows): entries of leased rows; of others, with those of leased uses before
  View<std::uint32_t> list_of;         // (items); of records: see ListDue
  View<std::uint64_t> ages;            // (kAgeSums), zero before the call
  View<std::uint32_t> least_left;      // (1), 2^32 - 1 before the call
};
void plan_leases(Stream& stream, PlanLeases const& arguments);

// Lists the records whose leases end before the step. Rows of which gradients wait are due, unless the batch refreshes
// them. Records that nothing needs after the last complete step are forgotten.
struct ListDue {
  struct RecordsOfTable {
    Rows<std::uint64_t> records{};
    Rows<std::uint64_t const> keys{};  // of the index
    std::uint32_t size = 0, table = 0;
  };
  std::span<RecordsOfTable const> tables;
  LeaseLists lists;
  LeaseSteps steps;
  View<std::uint32_t> list_of;  // (records)
};
void list_due(Stream& stream, ListDue const& arguments);

}  // namespace gpups::kernels
