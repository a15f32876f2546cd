// SPDX-License-Identifier: Apache-2.0
// The residuals of this rank's gradients: keeps them, sends flushed ones to the owners, receives those of other ranks,
// and saves and loads them with checkpoints.
//
// A residual belongs to a row and a sender, whoever owns the row. A rank that becomes the owner adds its own residual
// to the row. A sender does not know the owners of the rows that it flushes, and sends them to their homes. A home adds
// the rows that it owns in the same step, and the next step sends the others to their owners.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cache/feedback/gradient_residuals.hpp"
#include "cache/protocol/owner/announced_keys.hpp"
#include "cache/protocol/reader/intent_exchange.hpp"
#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// Memory for decoded flushed or restored residuals. `counts` is zero: residuals are no occurrences.
struct FlushedSums {
  Array<std::uint32_t> ids;
  Matrix<std::int64_t> sums;
  Array<std::int64_t> counts;
  Array<std::uint32_t> positions;  // of the rows in `sums`, if these have others
};

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid residuals of peers.
class ResidualExchange {
 public:
  // Both references must outlive this object.
  ResidualExchange(RoundState& state, IntentExchange& intents, AnnouncedKeys& announced)
      : state_(state), intents_(intents), announced_(announced) {}

  // Returns the residuals of a table. REQUIRES: the table has gradient compression.
  ResidualTable& of(TableId table) {
    return residuals_.of(table, state_.stream.device(), state_.table(table).options(), state_.ranks);
  }
  // Makes the step whose round begins send all residuals.
  void send_all() { residuals_.send_all(); }

  // Encodes the residuals that this step sends. Call it when the gradients of all parts are encoded.
  void wait_encode();
  // Returns the lists for the header of a message to `to`; the functions that are added to `sends` send their data,
  // after the header.
  std::vector<FlushedList> send(Rank to, std::vector<std::function<void()>>& sends);
  // Throws PeerError for impossible sizes, and for residuals of a table without gradient compression that were not
  // restored.
  void check(Rank from, std::vector<FlushedList> const& lists) const;
  // Receives lists. Calls `taken` twice for each.
  void receive(Rank from, std::vector<FlushedList> const& lists, std::function<void()> const& taken);

  // Begins to apply the step, before its residuals are decoded.
  void wait_begin_apply(bool rejected);
  // Adds the residuals that this step adds to rows of a table to `lists`. room: has their memory. REQUIRES: not
  // rejected.
  void wait_append(TableId table, std::vector<RowSums>& lists, std::deque<FlushedSums>& room);
  // Returns the number by which residuals are divided if the step that is applied has no samples: the samples of the
  // last step that had some.
  std::size_t samples() const { return samples_; }
  // Ends the step.
  void end_apply(bool rejected);
  // Returns true if the applied step flushed residuals. Then all changed values are sent, ignoring the filter.
  bool resends_all_values() const { return resends_all_values_; }

  // Returns the keys of all residuals of a table, ascending. Call it between steps.
  std::vector<Key> wait_keys(TableId table) const;
  // Drops the residuals of deleted rows. keys: distinct. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Makes the next applied step send the residuals of rows to their homes, since this rank owns the rows now, or has
  // owned them. Call it between steps.
  void send_early(TableId table, std::span<Key const> keys) {
    if (!residuals_.has(table)) return;
    of(table).send_early(keys);
    // Other ranks may own these now.
    if (auto const owned = restored_owned_.extract(table); !owned.empty()) of(table).send_early(owned.mapped());
  }
  // Returns true if a rank may have residuals of the table that were restored, and that no step has added. Equal on all
  // ranks.
  bool has_restored(TableId table) const { return restored_tables_.contains(table); }
  // Fills in this rank's file of a checkpoint, but for its mirrors. Call it between steps.
  void wait_save(ResidualFile& file) const;
  // Loads this rank's share of one rank's file; see RoundExecutor::wait_load_residuals().
  void wait_load(ResidualFile const& file);

 private:
  // Flushed residuals from one rank.
  struct ReceivedFlush {
    Rank from;
    FlushedList rows;
    std::shared_ptr<Array<std::uint8_t>> keys;    // encoded keys, on the host
    std::shared_ptr<kernels::PackedBytes> bytes;  // encoded sums, on the stream's device
  };
  Rank home_of(Key key) const;
  std::vector<Rank> wait_ranks_for(TableId table, std::vector<Key> const& keys) const;
  FlushedList queue(TableId table, ResidualTable::FlushedRows const& rows, std::size_t list,
                    std::vector<std::function<void()>>& sends);
  RowSums wait_resolved(View<Key const> keys, TableId table, FlushedSums& room);
  std::vector<Key> keys_of(ReceivedFlush const& list);
  std::optional<RowSums> wait_decode(Rank from, TableId table, ResidualTable::FlushedRows const& rows,
                                     FlushedSums& room);
  Array<Key> wait_arrived(TableId table) const;

  RoundState& state_;
  IntentExchange& intents_;
  AnnouncedKeys& announced_;
  GradientResiduals residuals_;
  std::vector<GradientResiduals::TableFlush> encoded_;  // what this step sends, and what this rank adds itself
  std::vector<ReceivedFlush> flushed_;                  // flushed residuals of this step, from other ranks
  // Residuals of rows of this home, from other ranks or of a checkpoint. The next applied step sends them to the owners
  // exactly, or adds them if this rank is the owner.
  using SumsByKey = std::map<Key, std::vector<std::int64_t>>;
  std::map<TableId, SumsByKey> waiting_;
  std::map<TableId, SumsByKey> relayed_;  // those that this step has received, for the next one
  std::set<TableId> restored_tables_;
  // Rows of a checkpoint that had moved to this rank before the first step.
  std::map<TableId, std::vector<Key>> restored_owned_;
  std::size_t samples_ = 0;  // over all ranks, in the last step with samples
  bool resends_all_values_ = false;
};

}  // namespace gpups::cache
