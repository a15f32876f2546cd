// SPDX-License-Identifier: Apache-2.0
// The state machine of a round, which ends a step, on one rank. It decides the order of actions; RoundExecutor executes
// them. It does no input or output, starts no thread and reads no clock.
//
// After step t, a rank sends gradients to every rank (gradient phase). When it has the gradients of all ranks, it
// applies them and sends to every rank the new values that the receiver reads next (refresh phase). When it has the
// values of all ranks, step t is complete. A rank can be one phase ahead of another rank, but not two. So a message of
// the next phase is kept, and any other unexpected message is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
    std::unique_ptr<Message> in, out;  // arrived messages of the gradient and the refresh phase; usually null
    bool given = false;                // next() has returned the message of this phase
    bool taken = false;                // and the data that it announces have arrived
  };

 public:
  // Memory in bytes for each rank.
  static constexpr std::size_t kBytesOfPeer = sizeof(Peer);

  enum class Phase { kTraining, kGradientPhase, kRefreshPhase };
  enum class ActionKind { kSendGradients, kReceiveGradients, kApply, kSendRefreshes, kReceiveRefreshes, kComplete };

  // What the executor must do next. kSend...: send to all other ranks. kReceive...: receive the data that `message`
  // announces from rank `from`, and call on_data_received() when they have arrived.
  struct Action {
    ActionKind kind{};
    Rank from{};
    Message message;
  };

  // The report of a rank about its step, or the combined report of all ranks.
  struct StepReport {
    std::uint64_t samples = 0;
    std::uint32_t signal = 0;
    std::string rejection;  // why the step must not be applied, or empty
  };

  // first: the first step.
  Round(Rank me, int ranks, Clock first);

  // Starts the round of step clock(). own: the report of this rank. REQUIRES: no round is in progress.
  void end_step(StepReport const& own);
  // Takes a message of kind kGradientPhase or kRefreshPhase. Throws PeerError if it is not of the expected step and
  // phase.
  void on_message(Rank from, Message const& message);
  // Reports that the data of a kReceive... action have arrived.
  void on_data_received(Rank from);
  // Returns the next action; nullopt if there is none before the next call of a function above.
  std::optional<Action> next();

  Phase phase() const { return phase_; }
  // Returns the step that is trained, or whose round is in progress. All earlier steps are complete on this rank.
  Clock clock() const { return clock_; }
  // Returns the step of the next kSendGradients action. Intents that are queued now are sent with it.
  Clock next_in() const;
  // Returns the last step that is applied to the rows that this rank owns.
  Clock applied() const { return applied_; }

  StepReport const& own() const { return own_; }
  // Returns the combined report of all ranks: the sum of samples, the union of signal bits, and the first rejection.
  // Complete when next() returns kApply.
  StepReport const& all() const { return all_; }

  // Returns the ranks whose data of this phase have not arrived; none between rounds.
  std::vector<Rank> pending_peers() const;
  // Returns true if a round is in progress and the message of `peer` for this phase has not arrived.
  bool lacks(Rank peer) const;
  // Returns what this rank waits for, for error messages: "the gradients of step 7".
  std::string pending_data() const;

 private:
  void begin(Phase phase);
  bool all_taken() const;
  void add(StepReport const& report);

  Rank me_;
  std::vector<Peer> peers_;
  Clock clock_;
  Clock applied_;
  Phase phase_ = Phase::kTraining;
  bool sent_ = false;  // next() has returned the kSend... action of this phase
  StepReport own_, all_;
};

}  // namespace gpups::cache
