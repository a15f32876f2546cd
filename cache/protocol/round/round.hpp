// SPDX-License-Identifier: Apache-2.0
// The state machine of a round, which ends a step, on one rank. It decides the order of actions; RoundExecutor executes
// them. It does no input or output, starts no thread and reads no clock.
//
// After step t, a rank sends gradients to every rank (gradient phase). When it has the gradients of all ranks, it
// applies them and sends to every rank the new values that the receiver reads next (refresh phase). When it has the
// values of all ranks, step t is complete. A rank can be one phase ahead of another rank, but not two. So a message of
// the next phase is kept, and any other unexpected message is an error.
//
// A restored run may begin with a round that belongs to no step: it announces batches and changes no row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cache/wire/message.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// For the thread that makes progress. No function blocks.
//
//   round.end_step(report);
//   while (auto const action = round.next()) executor.execute(*action);  // again after each on_...() call
class Round {
  // The messages of another rank.
  struct Peer {
    std::unique_ptr<GradientPhase> in;  // arrived messages; usually null
    std::unique_ptr<RefreshPhase> out;
    bool given = false;  // next() has returned the message of this phase
    bool taken = false;  // and the data that it announces have arrived
  };

 public:
  // Memory in bytes for each rank.
  static constexpr std::size_t kBytesOfPeer = sizeof(Peer);

  enum class Phase { kTraining, kGradientPhase, kRefreshPhase };

  // What the executor must do next. Send...: send to all other ranks. Receive...: receive the data that `message`
  // announces from rank `from`, and call on_data_received() when they have arrived.
  struct SendGradients {};
  struct ReceiveGradients {
    Rank from{};
    GradientPhase message{};
  };
  struct Apply {};
  struct SendRefreshes {};
  struct ReceiveRefreshes {
    Rank from{};
    RefreshPhase message{};
  };
  struct Complete {};
  using Action = std::variant<SendGradients, ReceiveGradients, Apply, SendRefreshes, ReceiveRefreshes, Complete>;

  // first: the first step.
  Round(Rank me, int ranks, Clock first);

  // Starts the round of step clock(). own: the report of this rank. REQUIRES: no round is in progress.
  void end_step(StepReport const& own);
  // Makes the first round one that only announces batches; its clock is that of the step before. Call it before the
  // first round, on all ranks. begin_announcing() starts it, and end_step() must wait until it is complete.
  void announce_first();
  void begin_announcing();
  // Returns true if begin_announcing() must come before end_step().
  bool announces_next() const { return announces_next_; }
  // Returns false if the round in progress, or else the last one, only announces batches.
  bool is_of_step() const { return is_of_step_; }
  // Returns the step before which all steps are complete on this rank.
  Clock complete_before() const { return clock_ + (is_of_step_ || phase_ == Phase::kTraining ? 0 : 1); }

  // Take a message. Throw PeerError if it is not of the expected step and phase.
  void on_message(Rank from, GradientPhase const& message);
  void on_message(Rank from, RefreshPhase const& message);
  // Reports that the data of a Receive... action have arrived.
  void on_data_received(Rank from);
  // Returns the next action; nullopt if there is none before the next call of a function above.
  std::optional<Action> next();

  Phase phase() const { return phase_; }
  // Returns the step that is trained, or whose round is in progress. All earlier steps are complete on this rank.
  Clock clock() const { return clock_; }
  // Returns the step of the next SendGradients action. Intents that are queued now are sent with it.
  Clock next_in() const;
  // Returns the last step that is applied to the rows that this rank owns.
  Clock applied() const { return applied_; }

  StepReport const& own() const { return own_; }
  // Returns the combined report of all ranks: the sum of samples, the union of signal bits, and the first rejection.
  // Complete when next() returns Apply.
  StepReport const& all() const { return all_; }

  // Returns the ranks whose data of this phase have not arrived; none between rounds.
  std::vector<Rank> pending_peers() const;
  // Returns true if a round is in progress and the message of `peer` for this phase has not arrived.
  bool lacks(Rank peer) const;
  // Returns what this rank waits for, for error messages: "the gradients of step 7".
  std::string pending_data() const;

 private:
  void begin(Phase phase);
  void begin_round(StepReport const& own);
  Clock next_round() const { return announces_next_ ? clock_ - 1 : clock_; }
  void check(Rank from, Phase of, Clock clock, bool fits) const;
  bool has_arrived(Peer const& peer) const;
  bool all_taken() const;
  void add(StepReport const& report);

  Rank me_;
  std::vector<Peer> peers_;
  Clock clock_;
  Clock applied_;
  Phase phase_ = Phase::kTraining;
  bool sent_ = false;  // next() has returned the Send... action of this phase
  bool announces_next_ = false, is_of_step_ = true;
  StepReport own_, all_;
};

}  // namespace gpups::cache
