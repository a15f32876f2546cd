// SPDX-License-Identifier: Apache-2.0
// Under bounded staleness: which rows of a batch are read from replicas as they are, and which ones it announces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/placement/divided_rows.hpp"
#include "cache/placement/lease_columns.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/plan_leases.hpp"
#include "kernels/placement/settle_leases.hpp"

namespace gpups::cache {

// The leases of a rank's replicas. A lease begins with the batch that refreshes the replica, at clock v, and lasts
// until clock v + staleness. Batches in it send nothing for the row. If there are some, the first batch after the lease
// sends the sum of their gradients.
//
// Decisions depend on the batches and their order alone. If all are planned in the order of their clocks, no read is
// more than `staleness` steps old, and no gradient waits longer. If there are too many rows, those with leases come
// first, and then those that were used recently. Memory on the device: about 70 bytes for each row that a batch of the
// last `staleness` steps, or a planned one, uses. Functions without `wait` in their names queue work on the stream.
class ReplicaLeases {
 public:
  // staleness: at least 1. me: the home of the rows that need no lease.
  ReplicaLeases(Device device, std::size_t tables, std::int64_t staleness, int ranks, Rank me);

  struct BatchDivision {
    Clock step{};
    std::span<std::size_t const> leases_max;  // of each table; rows that have not been used recently get 3/4 of them
    bool plans_own = false;                   // rows with this home may have other owners
    bool refresh_all = false;                 // no use is leased
    bool send_all = false;                    // the batch sends all gradients that wait
  };
  // Decides how a batch uses each row. Waits once, and additionally if an index grows.
  DividedRows wait_divide(Stream& stream, std::span<UndividedPart const> parts, BatchDivision const& division);

  // Counts gradients of leased uses in a step as applied, because this rank owns the rows.
  struct AppliedRows {
    TableId table{};
    View<std::uint32_t const> records, entries;  // DividedRows::OfPart
    View<std::uint32_t const> items;             // (n), their elements, counted from first_item on
    std::uint32_t first_item = 0;
  };
  void count_applied(Stream& stream, std::span<AppliedRows const> lists, Clock step);
  // Records of rows that no lease or waiting gradient concerns after `step` are forgotten.
  void complete(Clock step) { complete_ = step; }

  // pinned[i] = rows[i], or kNoRow if no planned lease of keys[i] ends in `step` or later. It may begin later, too.
  // REQUIRES: `step` is not complete.
  struct KeyedRows {
    TableId table{};
    View<Key const> keys;            // (n)
    View<std::uint32_t const> rows;  // (n)
    View<std::uint32_t> pinned;      // (n)
  };
  void select_leased(Stream& stream, std::span<KeyedRows const> lists, Clock step);

  struct KeysOfTable {
    TableId table{};
    View<Key const> keys;  // (n), distinct
  };
  // Makes rows due whose gradients were not applied, because the step was rejected.
  void retry(Stream& stream, std::span<KeysOfTable const> lists);
  // Ends all leases. Gradients that wait are due. REQUIRES: no batch is planned whose step is not complete.
  void clear(Stream& stream);
  // The same for rows whose gradients were dropped. REQUIRES: clear() was called, and wait_divide() was not.
  void drop(Stream& stream, KeysOfTable const& list);

  // Returns the number of leases of a table.
  std::size_t leases(TableId table) const { return tables_[number(table)].leases; }
  // Returns the number of rows of a table that have records.
  std::size_t rows(TableId table) const { return tables_[number(table)].index.size(); }
  // Returns the bytes of memory for `rows` rows with records.
  static std::size_t bytes_for(std::size_t rows);

  // The uses of leased replicas that were planned.
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t age = 0;      // the sum over these, in steps
    std::uint64_t age_max = 0;  // in steps
  };
  Counts const& counts() const { return counts_; }

 private:
  void find(Stream& stream, std::span<KeysOfTable const> lists, std::span<View<std::uint32_t> const> ids) const;
  void find_records(Stream& stream, std::span<UndividedPart const> parts, UndividedColumns const& batch,
                    bool plans_own) const;
  std::vector<kernels::RowsOfHome> rows_of_homes(std::span<UndividedPart const> parts, UndividedColumns const& batch,
                                                 bool plans_own) const;
  LeaseListItems wait_list(Stream& stream, std::span<UndividedPart const> parts, UndividedColumns const& batch,
                           BatchDivision const& division);
  void wait_index(Stream& stream, UndividedColumns const& batch, LeaseListItems& lists);
  void grant(Stream& stream, UndividedColumns const& batch, LeaseListItems const& lists, BatchDivision const& division,
             DividedRows& divided);
  void end(Stream& stream, std::span<KeysOfTable const> lists, kernels::LeaseEnd end);

  Device device_;
  std::uint64_t staleness_;
  std::uint32_t ranks_, me_;
  std::vector<LeasedTable> tables_;
  Clock complete_{-1};
  Counts counts_;
};

}  // namespace gpups::cache
