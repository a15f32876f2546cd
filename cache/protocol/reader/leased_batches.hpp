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
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/feedback/waiting_sums.hpp"
#include "cache/placement/replica_leases.hpp"
#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// Divides the batches of this rank, and joins the rows and the sums of their parts. For the thread that makes progress.
// Functions with `wait` in their names block until the stream is done; the others queue work on it.
class LeasedBatches {
 public:
  // `state` must outlive this object.
  explicit LeasedBatches(RoundState& state) : state_(state) {}
  // Call it once, when all tables are known and the staleness is above 0.
  void start();

  // Returns the batch to announce instead of `whole`. unannounced: see PendingBatch.
  BatchPtr wait_divide(BatchPtr const& whole, std::int64_t& unannounced);
  // Makes the rows of the whole batch readable, and returns it. REQUIRES: the announced rows are here, and the step
  // before is complete.
  PreparedBatch::Impl& join_rows(Clock clock);
  // Returns the announced batch, with its sums and those that have waited. reads: end_join() needs these.
  BatchPtr join_sums(PreparedBatch::Impl const& whole, kernels::HostReads& reads);
  // Sets `error` if a sum is too large. Throws Error if a sum that waits has become too large. Blocks only for these
  // errors. REQUIRES: the reads are done.
  void end_join(Clock clock, std::string& error);
  // Keeps the replicas of rows that leave this rank with the batches of a step, while a lease relies on them.
  void pin_leaving(Clock clock);
  // Adds the gradients of leased uses of rows that this rank owns in the step to `lists`: they need not wait. The
  // arrays are valid until the end of the step.
  void append_owned(Clock clock, TableId table, std::vector<RowSums>& lists);
  // Ends the step of a batch: keeps the gradients of leased uses, and drops those that were sent. rejected: keeps what
  // has waited, and drops the gradients of the step. Waits only if an index grows, or several parts of a table have new
  // rows.
  void wait_end_step(Clock clock, bool rejected);

  // Makes the batch of a step refresh all its rows, and send all gradients that wait. Call it before the batch is
  // announced.
  void synchronize(Clock clock) { synchronized_.insert(clock); }
  // Ends all leases, because rows have changed or moved. Call it while no batch is announced.
  void clear();
  // Return the keys whose gradients wait, and drop some. Call them between steps.
  std::vector<Key> wait_keys(TableId table);
  void wait_drop(TableId table, View<Key const> keys);
  // Adds the gradients that wait to this rank's file of a checkpoint. Call it between steps.
  void wait_save(ResidualFile& file);

  // Returns the planned uses of replicas that are read as they are, in all tables.
  ReplicaLeases::Counts counts() const { return leases_ ? leases_->counts() : ReplicaLeases::Counts{}; }

 private:
  // The rows of a step whose gradients may wait, or have waited: see kernels::ListWaiting. Leased rows are numbered
  // before announced ones.
  struct JoinedSums {
    Array<std::uint32_t> slots, uses, items, first_there, bad_rows_there;
    std::vector<std::uint32_t> first;     // of each list
    std::vector<std::uint32_t> bad_rows;  // of the announced parts, or kNoRow
    // From end_join() on: the leased rows that this rank owns.
    Array<std::uint32_t> owned_ids, owned_rows;
    Array<std::int64_t> owned_entries;

    std::uint32_t size(std::uint32_t list, std::uint32_t lists = 1) const { return first[list + lists] - first[list]; }
    View<std::uint32_t const> of(std::uint32_t list, std::uint32_t lists = 1) const {
      return items.view().slice(first[list], size(list, lists));
    }
  };
  struct DividedBatch {
    BatchPtr whole, announced;  // the announced batch has one part for each table with rows
    DividedRows rows;
    Array<std::uint32_t> leased_ids{};  // of all parts, from join_rows() on
    std::optional<JoinedSums> joined{};

    std::uint32_t parts() const { return static_cast<std::uint32_t>(rows.parts.size()); }
    PreparedPart const* part_of(TableId table) const;
  };
  // Sums that were added to those that wait, and whose sizes are not known on the host.
  struct AddedSums {
    Array<std::uint32_t> bad_items_there;  // of the parts, in the order of their tables
    std::vector<TableId> tables;
    Array<Key> keys;  // by item
    std::vector<std::uint32_t> bad_items{};
  };
  std::vector<std::size_t> leases_max(PreparedBatch::Impl const& whole);
  std::vector<UndividedPart> undivided(PreparedBatch::Impl const& whole, Array<std::uint32_t>& owners);
  BatchPtr make_announced(BatchPattern::Impl const& whole, DividedRows& rows, Clock clock) const;
  void list_sums(DividedBatch& divided, kernels::HostReads& reads);
  void add_up(DividedBatch& divided);
  void drop_sent(DividedBatch& divided);
  void retry_sent(DividedBatch const& divided);
  void wait_keep(DividedBatch& divided, Clock clock);
  void wait_check_added();
  void check_added();
  std::vector<std::vector<std::size_t>> passes(DividedBatch const& divided) const;

  RoundState& state_;
  std::set<Clock> synchronized_;  // steps of batches that are not announced
  Clock synchronized_until_{-1};  // no batch of a step up to it, that is announced now, uses a lease
  std::optional<ReplicaLeases> leases_;
  std::vector<WaitingSums> sums_;       // by table
  std::vector<std::size_t> step_rows_;  // by table: the most rows of other homes that a batch has used
  std::optional<AddedSums> added_;
  std::map<Clock, DividedBatch> batches_;
};

}  // namespace gpups::cache
