// SPDX-License-Identifier: Apache-2.0
// Under bounded staleness: which batches read a replica as it is, and which refresh it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/index/key_index.hpp"

namespace gpups::cache {

// How a batch uses a row that another rank may own.
enum class ReplicaUse : std::uint8_t {
  kRefresh,          // the owner sends the value, and gets the gradient
  kRefreshAndLease,  // the same, and later batches may read the replica as it is
  kLeased            // the replica is read as it is; the gradient waits on this rank
};

// The leases of a rank's replicas of one table. A lease begins with the batch that refreshes the replica, at clock v,
// and lasts until clock v + staleness. Batches in it send nothing for the row. If there are some, the first batch after
// the lease sends the sum of their gradients.
//
// Decisions depend on the batches and their order alone. If all are planned in the order of their clocks, no read is
// more than `staleness` steps old, and no gradient waits longer. Host memory: about 65 bytes for each row that a batch
// of the last `staleness` steps, or a planned one, uses.
class ReplicaLeases {
 public:
  // staleness: at least 1.
  explicit ReplicaLeases(std::int64_t staleness) : staleness_(staleness), host_(Device::host(), 1) {}

  // Decides how the batch of `step` uses each key. keys: (n), distinct, on the host, and not refreshed by the batch
  // already. occurrences: (n), entries of each key; those of leased uses are added to the next refresh of the row.
  // leases_max: the most leases at a time; rows that have not been used recently get only three quarters of them.
  // refresh_all: no use is leased.
  std::vector<ReplicaUse> plan(View<Key const> keys, std::span<std::uint32_t> occurrences, Clock step,
                               std::size_t leases_max, bool refresh_all = false);

  // A row whose gradients are sent with a batch although no sample of it uses the row.
  struct DueRow {
    Key key{};
    std::uint32_t occurrences = 0;  // of leased uses
    ReplicaUse use = ReplicaUse::kRefresh;
  };
  // Ends the leases before `step`, and plans a refresh for the rows with gradients that have waited in them. Call it
  // after plan() for all keys of the batch. all: plans one for all rows with waiting gradients.
  std::vector<DueRow> take_due(Clock step, bool all, std::size_t leases_max);

  // Records that the gradients and the occurrences of leased uses in the batch of `step` have been applied, because
  // this rank owns the rows.
  void record_applied(View<Key const> keys, std::span<std::uint32_t const> occurrences, Clock step);
  // Returns the places of the keys of which some planned lease ends in `step` or later. It may begin later, too.
  // REQUIRES: `step` is not complete.
  std::vector<std::uint32_t> leased_at(View<Key const> keys, Clock step) const;
  // Forgets rows that no lease or waiting gradient concerns after `step`. Call it when `step` is complete.
  void complete(Clock step);
  // Makes keys due whose gradients were not applied, because the step was rejected.
  void retry(std::vector<Key> const& keys);
  // Ends all leases. Gradients that wait are due.
  void clear();
  // Makes keys not due, because their gradients were dropped. REQUIRES: clear() was called, and plan() was not.
  void drop(std::vector<Key> const& keys);

  // Returns the number of leases.
  std::size_t size() const { return leases_; }
  // Returns the number of rows with records.
  std::size_t rows() const { return index_.size(); }
  // Returns the bytes of host memory for `leases` leases.
  static std::size_t bytes_for(std::size_t leases) {
    return kernels::KeyIndex::bytes_for(leases, kernels::Growth::kByMoving) +
           leases * (sizeof(LeaseRecord) + sizeof(std::uint32_t));
  }

  // The uses of leased replicas that were planned.
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t age = 0;      // the sum over these, in steps
    std::uint64_t age_max = 0;  // in steps
  };
  Counts const& counts() const { return counts_; }

 private:
  struct LeaseRecord {
    Clock refreshed{-1};        // -1: the next use is planned like the first
    Clock leased_until{-1};     // the last step in which a planned lease lasts
    Clock earlier_refresh{-1};  // in a step before `refreshed` whose batch was planned later
    std::uint32_t occurrences = 0;
    std::uint32_t waiting_uses = 0;  // leased uses whose gradients may wait
    bool leased = false;
  };
  // A key with gradients that wait, but without a record.
  struct OverdueKey {
    Key key{};
    std::uint32_t occurrences = 0;
  };
  std::vector<std::uint32_t> ids_of(View<Key const> keys);
  ReplicaUse refresh(std::uint32_t id, Clock step, std::size_t leases_max);
  void take_overdue(Clock step, std::size_t leases_max, std::vector<DueRow>& due);
  void take(std::uint32_t id, Clock step, std::size_t leases_max, std::vector<DueRow>& due);

  std::int64_t staleness_;
  mutable Stream host_;
  kernels::KeyIndex index_{Device::host(), 0, kernels::Growth::kByMoving};
  std::vector<LeaseRecord> records_;                   // by the key's number in the index
  std::map<Clock, std::vector<std::uint32_t>> ended_;  // by the first clock after a lease; some were renewed
  // Likewise, of rows that the last planned batches do not use. Earlier batches that are not trained yet may read them.
  std::map<Clock, std::vector<std::uint32_t>> unplanned_;
  std::vector<OverdueKey> overdue_;
  std::size_t leases_ = 0;
  Counts counts_;
};

}  // namespace gpups::cache
