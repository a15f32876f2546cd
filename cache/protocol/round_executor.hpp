// SPDX-License-Identifier: Apache-2.0
// Executes the actions of a round on one rank, with one part for each kind of data that ranks exchange.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/protocol/exchange/gradient_exchange.hpp"
#include "cache/protocol/exchange/late_fetches.hpp"
#include "cache/protocol/exchange/move_exchange.hpp"
#include "cache/protocol/exchange/residual_exchange.hpp"
#include "cache/protocol/exchange/value_exchange.hpp"
#include "cache/protocol/home/home_planner.hpp"
#include "cache/protocol/owner/announced_keys.hpp"
#include "cache/protocol/owner/row_finder.hpp"
#include "cache/protocol/reader/batch_router.hpp"
#include "cache/protocol/reader/intent_exchange.hpp"
#include "cache/protocol/reader/leased_batches.hpp"
#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// Announces batches, ends steps, and executes each phase of the round. For the thread that makes progress. Functions
// with `wait` in their names block until `stream` is done; none waits for other ranks. PeerErrors report invalid
// messages of peers.
class RoundExecutor {
 public:
  // stream: used only by this object and by the thread that makes progress. All references must outlive this object.
  RoundExecutor(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round& round, TableShards& tables,
                OwnerDirectories& placement);
  // Sets when rows move, and by how many steps reads may be behind. Call it before the first batch, when all tables are
  // there.
  void set_policy(PlacementRules const& rules, std::int64_t staleness);
  // Makes a restored run plan its second step as a run that was not interrupted: a round that only announces batches
  // precedes the first step. Does nothing at step 0, if rows do not move, and with staleness: then the first step adds
  // gradients that have waited, so bits differ anyway. Call it before the first batch, on all ranks.
  void announce_first();
  // Between which ranks keys are plain. Set what this rank sends before the first batch, and what another rank sends
  // before its messages are handled.
  PlainKeys& plain_keys() { return state_.plain_keys; }

  // Announces a batch of this rank: queues intents for the homes of its keys. If the batch is too late for a round,
  // fetches the values of the rows that this rank does not own at once (late fetch).
  void announce(BatchPtr const& batch);
  // Ends the next step of the training thread. batch: the pushed batch, null if the step had none. If the round of an
  // earlier step is still in progress, the step waits in a queue.
  void end_step(BatchPtr const& batch, std::uint32_t signal);
  // Executes an action of Round::next().
  void execute(Round::Action const& action);
  LateFetches& late_fetches() { return late_fetches_; }

  // Called when a step is complete on this rank.
  std::function<void(Clock step, StepReport const& all)> on_complete;
  // Plans the step after the one that is trained, if rows move or have moved and it is not planned yet. The next round
  // does so when it begins; an earlier call takes it out of the round.
  void wait_plan();

  // Makes the step that ends next send all residuals of gradients to the owners; see Store::flush_residuals().
  void flush_residuals() { flush_residuals_ = true; }
  LeasedBatches& leased() { return leased_; }
  // Returns true until a step has added the restored residuals. Any thread.
  bool has_restored() const { return state_.has_restored; }

  // Drops the residuals and the mirrors of erased rows. keys: distinct, of any owner. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Returns the keys of this rank's residuals of gradients and of gradients that wait, ascending. Call it between
  // steps.
  std::vector<Key> wait_residual_keys(TableId table);
  // Drops the residuals of these keys, and keeps mirrors. keys: distinct. Call it between steps.
  void wait_drop_residuals(TableId table, View<Key const> keys);
  // Returns true if a rank may have restored residuals of the table that no step has added. Equal on all ranks.
  bool has_restored_residuals(TableId table) const { return residuals_.has_restored(table); }
  // See ResidualExchange.
  void send_residuals_early(TableId table, std::span<Key const> keys) { residuals_.send_early(table, keys); }
  // Returns the residuals of this rank's gradients and the mirrors that other ranks have of its rows, for a checkpoint.
  // Call it between steps.
  ResidualFile wait_save_residuals();
  // Loads this rank's share of one rank's file. If the number of ranks is that of the checkpoint, each rank continues
  // with its own residuals and mirrors. Otherwise the next applied step adds the residuals to the rows, and mirrors
  // start from initial values. Call it for the files of all ranks. REQUIRES: there are no other residuals or mirrors.
  void wait_load_residuals(ResidualFile const& file);

  // Returns true if wait_plan() has something to do.
  bool has_unplanned_step() const { return planner_.expected().has_value(); }
  // Returns true if no ended step waits for its round, and no step for its plan.
  bool idle() const { return ended_.empty() && !has_unplanned_step(); }
  // Returns the ranks that have not answered the late fetches of this rank for `step`.
  std::vector<Rank> pending_peers(Clock step) const { return late_fetches_.pending_peers(step); }

  // See Stats.
  std::uint64_t late_batches() const { return late_batches_; }
  // Returns the number of keys that were fetched late, and the number of rows of batches that other ranks own.
  std::uint64_t late_keys() const { return late_fetches_.keys(); }
  std::uint64_t remote_keys() const { return state_.remote_keys; }
  // Returns the number of keys of routed batches whose home is another rank.
  std::uint64_t remote_home_keys() const { return state_.remote_home_keys; }
  // See HomePlanner.
  std::vector<RankedRow> wait_hottest_rows(std::size_t most);
  // Returns the number of rows that this rank has passed to other ranks while training.
  std::uint64_t moved_rows() const { return moves_.rows(); }

 private:
  struct EndedStep {
    BatchPtr batch;
    std::uint32_t signal;
    bool flush_residuals;
  };

  void announce_rows(BatchPtr const& batch, std::int64_t unannounced);
  void begin_round();
  void send_gradient_phase();
  void receive_gradient_phase(Rank from, GradientPhase const& message);
  PendingBatch* batch_to_route(Clock step);
  void apply();
  void send_refresh_phase();
  void receive_refresh_phase(Rank from, RefreshPhase const& message);
  void complete();
  void check_ready(Clock clock);
  void wait_announce_moving(PendingBatch& pending);
  std::string rejection_of(PreparedBatch::Impl const& batch, std::vector<std::uint32_t> const& wrong_numbers,
                           std::vector<std::uint32_t> const& bad_rows);

  RoundState state_;
  HomePlanner planner_;
  BatchRouter router_;
  IntentExchange intents_;
  AnnouncedKeys announced_;
  LeasedBatches leased_;
  ResidualExchange residuals_;
  RowFinder finder_;
  GradientExchange gradients_;
  ValueExchange values_;
  MoveExchange moves_;
  LateFetches late_fetches_;
  // What apply() has found for the refresh phase.
  ValueExchange::ExistingLists existing_;
  MoveExchange::MarkedLists leaving_;
  std::vector<std::pair<Clock, std::vector<ListKeys>>> own_intents_;  // for the next gradient phase
  Clock first_{};                                                     // if rows move, the first step
  std::uint64_t late_batches_ = 0;
  std::deque<EndedStep> ended_;   // ended steps that wait for the round of an earlier step
  bool flush_residuals_ = false;  // for the step that ends next
};

}  // namespace gpups::cache
