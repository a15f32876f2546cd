// SPDX-License-Identifier: Apache-2.0
// The round that ends a step, as one rank goes through it. It sees who has said what, and says what comes next; the
// executor does it. It opens no socket, starts no thread and reads no clock.
//
// A rank trains step t, then tells every rank its gradients (in), applies when it has heard all of them, tells every
// rank the new values that are read next (out), and is done with t when it has those of all. A rank can be one phase
// ahead of another, never two: so what arrives early is kept, and what else arrives cannot be right.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/message.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

class Round {
  // What another rank has said in this phase, or ahead of it.
  struct Peer {
    std::unique_ptr<Message> in, out;  // arrived, not yet handed out; most of the time none is there
    bool given = false;                // handed out in this phase
    bool taken = false;                // and its data is there
  };

 public:
  static constexpr std::size_t kBytesOfPeer = sizeof(Peer);

  enum class Phase { kTraining, kGradientPhase, kRefreshPhase };
  enum class ActionKind { kSendGradients, kReceiveGradients, kApply, kSendRefreshes, kReceiveRefreshes, kComplete };

  // What the executor must do next. kSend..: send to all others. kTake..: receive what `message` announces, from
  // `from`, and call on_data_received() when it is there.
  struct Action {
    ActionKind kind{};
    Rank from{};
    Message message;
  };

  // What a rank says of its step.
  struct StepReport {
    std::uint64_t samples = 0;
    std::uint32_t signal = 0;
    std::string rejection;  // why the step must not be applied, or empty
  };

  Round(Rank me, int ranks, Clock first);

  // The training thread has ended the step clock(), and this is what there is to say of it.
  void end_step(StepReport const& own);
  // A header of a round has come. Throws PeerError where it cannot be right.
  void on_message(Rank from, Message const& message);
  // What a kTake action asked for has arrived.
  void on_data_received(Rank from);
  // The next thing to do, or nothing until one of the calls above.
  std::optional<Action> next();

  Phase phase() const { return phase_; }
  // The step that is trained or ended now: all before it are complete on this rank.
  Clock clock() const { return clock_; }
  // The step whose kSendGradients comes next: what is announced now travels with it.
  Clock next_in() const;
  // This rank's owned rows have every update up to and including this step.
  Clock applied() const { return applied_; }

  StepReport const& own() const { return own_; }
  // Over all ranks: samples added, bits united, the first rejection. Complete when kApply is given.
  StepReport const& all() const { return all_; }

  // Ranks that have not yet said what is pending_peers now.
  std::vector<Rank> pending_peers() const;
  // The rank's message of this phase has not come.
  bool lacks(Rank peer) const;
  // For messages: "the gradients of step 7".
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
  bool sent_ = false;  // this rank's part of the phase
  StepReport own_, all_;
};

}  // namespace gpups::cache
