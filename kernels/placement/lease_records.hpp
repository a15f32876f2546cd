// SPDX-License-Identifier: Apache-2.0
// What a rank knows about the leases of rows that other ranks may own, under bounded staleness: a record for each row,
// by the number of its key in an index of leases; and the lists into which a batch is divided.
//
// A lease begins with the batch that refreshes a replica, at clock v, and lasts until clock v + staleness. Batches in
// it read the replica as it is, and their gradients wait on this rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/function.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The words of a record. A number without a key has zeros.
inline constexpr std::size_t kLeaseWords = 5;
// The word with numbers of uses, and flags.
inline constexpr std::size_t kUsesOfLease = 4;

// A record. Steps are numbers from 1 on; 0 means none.
struct LeaseRecord {
  std::uint64_t refreshed = 0;        // the last batch that was planned to refresh the row
  std::uint64_t leased_until = 0;     // the last step in which a planned lease lasts
  std::uint64_t earlier_refresh = 0;  // in a step before `refreshed`, whose batch was planned later
  std::uint64_t latest_use = 0;       // the last batch that was planned to read the replica as it is
  std::uint32_t occurrences = 0;      // of leased uses since the refresh; fewer than 2^32
  std::uint32_t waiting_uses = 0;     // leased uses whose gradients may wait, below 2^29
  bool leased = false;                // since the refresh
  bool overdue = false;               // gradients wait that the next batch must send
  bool left = false;                  // the next use is planned like the first

  static constexpr unsigned kWaitingBit = 32, kFlagBit = 61;

  GPUPS_FN static constexpr std::uint64_t number_of(std::int64_t step) { return static_cast<std::uint64_t>(step) + 1; }
  GPUPS_FN static LeaseRecord read(std::uint64_t const* words) {
    std::uint64_t const packed = words[kUsesOfLease];
    return {.refreshed = words[0],
            .leased_until = words[1],
            .earlier_refresh = words[2],
            .latest_use = words[3],
            .occurrences = static_cast<std::uint32_t>(packed),
            .waiting_uses = static_cast<std::uint32_t>(packed >> kWaitingBit) & ((1U << (kFlagBit - kWaitingBit)) - 1),
            .leased = (packed >> kFlagBit & 1) != 0,
            .overdue = (packed >> (kFlagBit + 1) & 1) != 0,
            .left = (packed >> (kFlagBit + 2) & 1) != 0};
  }
  GPUPS_FN void write(std::uint64_t* words) const {
    words[0] = refreshed;
    words[1] = leased_until;
    words[2] = earlier_refresh;
    words[3] = latest_use;
    words[kUsesOfLease] = packed_uses(waiting_uses, occurrences) | std::uint64_t{leased ? 1U : 0U} << kFlagBit |
                          std::uint64_t{overdue ? 1U : 0U} << (kFlagBit + 1) |
                          std::uint64_t{left ? 1U : 0U} << (kFlagBit + 2);
  }
  GPUPS_FN static constexpr std::uint64_t packed_uses(std::uint32_t uses, std::uint32_t occurrences) {
    return std::uint64_t{uses} << kWaitingBit | occurrences;
  }

  GPUPS_FN bool exists() const { return refreshed != 0 || leased || overdue || left; }
  GPUPS_FN bool is_known() const { return refreshed != 0 && !left; }
  GPUPS_FN bool waits() const { return waiting_uses > 0 || overdue; }
  // Returns whether a batch of `step` may read the replica as it is.
  GPUPS_FN bool is_leased_at(std::uint64_t step, std::uint64_t staleness) const {
    return is_known() && leased && !overdue && refreshed < step && step <= refreshed + staleness;
  }
  // The record when a batch of `step` refreshes the row, without a lease. If later batches were planned before it, the
  // gradients of their leased uses wait on.
  GPUPS_FN LeaseRecord refreshed_at(std::uint64_t step) const {
    return {.refreshed = step,
            .leased_until = leased_until,
            .latest_use = latest_use,
            .waiting_uses = latest_use > step ? waiting_uses : 0};
  }
};

// The lists of a batch, for partition_items(). Announced rows and rows that are due are ordered by table and home.
struct LeaseLists {
  // How a row whose gradients have waited long enough is announced.
  enum Due : std::uint32_t {
    kDueLeased,   // it had a lease, and may get another one
    kDueKnown,    // it may get a lease
    kDueEarlier,  // in a step before its refresh
    kDueKinds
  };
  // How the rows of a part are used.
  enum Use : std::uint32_t {
    kRefreshed,     // announced, by this part or by another one of the table
    kLeasedAtHome,  // read as they are; their home is this rank
    kLeased,        // read as they are
    kUses
  };
  // What becomes of the leases of a table. The first ones may get a lease.
  enum LeaseChange : std::uint32_t {
    kRenewed,    // a refreshed row had a lease
    kKnown,      // a refreshed row had none
    kReturned,   // a row is planned like the first time, but has a record
    kNew,        // a row has no record
    kLost,       // a refreshed row had a lease, and gets none
    kEnded,      // a lease ended, and nothing waits
    kForgotten,  // a record is dropped
    kChanges,    // their number, and: none of them
  };
  std::uint32_t tables = 0, ranks = 1, parts = 0;

  GPUPS_FN constexpr std::uint32_t announced(std::uint32_t table, std::uint32_t home) const {
    return table * ranks + home;
  }
  GPUPS_FN constexpr std::uint32_t due(std::uint32_t table, std::uint32_t kind, std::uint32_t home) const {
    return tables * ranks + (table * kDueKinds + kind) * ranks + home;
  }
  GPUPS_FN constexpr std::uint32_t used(std::uint32_t part, std::uint32_t use) const {
    return (1 + kDueKinds) * tables * ranks + part * kUses + use;
  }
  GPUPS_FN constexpr std::uint32_t changed(std::uint32_t table, std::uint32_t change) const {
    return used(parts, 0) + table * kChanges + change;
  }
  constexpr std::uint32_t count() const { return changed(tables, 0); }
};

// The items that are partitioned: the rows of a batch as announced rows; the records of all tables; and the rows again,
// for their uses, and for the changes of leases.
struct LeaseItems {
  std::size_t rows = 0, records = 0;

  GPUPS_FN constexpr std::size_t records_at() const { return rows; }
  GPUPS_FN constexpr std::size_t uses_at() const { return rows + records; }
  GPUPS_FN constexpr std::size_t changes_at() const { return 2 * rows + records; }
  constexpr std::size_t count() const { return 3 * rows + records; }
};

}  // namespace gpups::kernels
