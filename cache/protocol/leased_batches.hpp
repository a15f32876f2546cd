// SPDX-License-Identifier: Apache-2.0
// Bounded staleness: batches of which some rows are read from replicas as they are.
//
// A batch is divided when it is announced. The protocol sees a batch with the rows to be refreshed, and with rows whose
// gradients have waited long enough; it is announced, exchanged and applied like any other. The other rows are read
// from this rank's replicas, and their gradients wait on this rank.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cache/feedback/waiting_sums.hpp"
#include "cache/placement/replica_leases.hpp"
#include "cache/protocol/round_state.hpp"

namespace gpups::cache {

// Divides the batches of this rank, and joins the rows and the sums of their parts. For the thread that makes progress.
// Functions with `wait` in their names block until the stream is done.
class LeasedBatches {
 public:
  // `state` must outlive this object.
  explicit LeasedBatches(RoundState& state) : state_(state) {}

  // Returns the batch to announce instead of `whole`. unannounced: see PendingBatch.
  BatchPtr wait_divide(BatchPtr const& whole, HostKeys const& keys, std::int64_t& unannounced);
  // Makes the rows of the whole batch readable, and returns it. REQUIRES: the announced rows are here, and the step
  // before is complete. Queued on the stream.
  PreparedBatch::Impl& join_rows(Clock clock);
  // Returns the announced batch, with its sums and those that have waited. Sets `error` if a sum is too large.
  BatchPtr wait_join_sums(PreparedBatch::Impl const& whole, std::string& error);
  // Keeps the replicas of rows that leave this rank with the batches of a step, while a lease relies on them. Waits if
  // rows leave.
  void wait_pin_leaving(Clock clock);
  // Adds the gradients of leased uses of rows that this rank owns in the step to `lists`: they need not wait. The
  // arrays are valid until the end of the step.
  void append_owned(Clock clock, TableId table, std::vector<RowSums>& lists);
  // Ends the step of a batch: keeps the gradients of leased uses, and drops those that were sent. rejected: keeps what
  // has waited, and drops the gradients of the step.
  void wait_end_step(Clock clock, bool rejected);

  // Makes the batch of a step refresh all its rows, and send all gradients that wait. Call it before the batch is
  // announced.
  void synchronize(Clock clock) { synchronized_.insert(clock); }
  // Ends all leases, because rows have changed or moved. Call it while no batch is announced.
  void clear();
  // Return the keys whose gradients wait, and drop some. Call them between steps.
  std::vector<Key> wait_keys(TableId table) const;
  void wait_drop(TableId table, View<Key const> keys);
  // Adds the gradients that wait to this rank's file of a checkpoint. Call it between steps.
  void wait_save(ResidualFile& file) const;

  // Returns the planned uses of replicas that are read as they are, in all tables.
  ReplicaLeases::Counts counts() const;

 private:
  // A part of a whole batch.
  struct DividedPart {
    Array<std::uint32_t> whole_rows, announced_rows;  // (k): the same rows in this part, and in the announced table
    Array<std::uint32_t> leased_rows, leased_ids;     // rows of this part that are read as they are
    Array<Key> leased_keys;
    std::vector<std::uint32_t> leased_entries;
    std::int64_t unannounced = 0;  // leased rows of other homes
    // From wait_join_sums() on, the leased rows by whether this rank owns them in the step.
    Array<std::uint32_t> owned_rows, owned_ids, replica_rows;
    Array<std::int64_t> owned_counts;
    Array<Key> replica_keys;
    std::vector<Key> owned_keys;
    std::vector<std::uint32_t> owned_entries;
  };
  // The announced batch has one part for each table.
  struct DividedBatch {
    BatchPtr whole, announced;
    std::vector<DividedPart> parts{};           // of the whole batch
    std::vector<Array<std::uint32_t>> begun{};  // by part of the announced batch: rows with which leases begin
    std::vector<std::vector<Key>> taken{};      // likewise: keys with sums that have waited
  };
  struct AnnouncedRows;
  struct AnnouncedPart;
  AnnouncedPart wait_plan_part(PreparedPart const& part, HostKeys const& keys, Clock clock, AnnouncedRows& rows,
                               DividedPart& divided);
  std::int64_t take_due(Clock clock, AnnouncedRows& rows);
  std::size_t rows_of_others(PreparedBatch::Impl const& batch, TableId table) const;
  std::shared_ptr<BatchPattern::Impl> make_pattern(BatchPattern::Impl const& whole,
                                                   std::vector<AnnouncedRows> const& parts);
  Array<std::uint32_t> begun_rows(AnnouncedRows const& rows) const;
  static PreparedPart* part_of(DividedBatch& divided, TableId table);
  std::vector<ReplicaUse> plan(TableId table, View<Key const> keys, Rank home, Clock clock,
                               std::span<std::uint32_t> occurrences);
  void wait_find_owned(DividedBatch& divided);
  ReplicaLeases& leases(TableId table);
  WaitingSums& sums(TableId table);

  RoundState& state_;
  std::set<Clock> synchronized_;  // steps of batches that are not announced
  Clock synchronized_until_{-1};  // no batch of a step up to it, that is announced now, uses a lease
  std::map<TableId, ReplicaLeases> leases_;
  std::map<TableId, WaitingSums> sums_;
  std::map<TableId, std::size_t> step_rows_;  // the most rows of other homes that a batch has used
  std::map<Clock, DividedBatch> batches_;
};

}  // namespace gpups::cache
