// SPDX-License-Identifier: Apache-2.0
// The round's data on one rank: whose batches name which rows, and the executor of the round's actions.
//
// A reader's intent names the keys of a batch once. Its order is then the order in which the owner sends their values
// and receives their gradients, so neither carries keys.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cache/mail.hpp"
#include "cache/prepared.hpp"
#include "cache/round.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

using BatchPtr = std::shared_ptr<Prepared::Impl>;

class Exchange {
 public:
  // Only the thread that turns the round uses this object. `stream` is its own.
  Exchange(Rank me, int ranks, Stream& stream, Mail& mail, Round& round,
           std::vector<std::unique_ptr<TableShard>>& tables);

  // This rank will read these rows: finds or reserves its own, and tells the owners of the others.
  void announce(BatchPtr const& batch);
  // The training thread has ended its next step: it has pushed this batch, or had none (null). Steps may end before
  // the round of an earlier one has.
  void step_ended(BatchPtr const& batch, std::uint32_t signal);
  // Performs what the round says comes next.
  void act(Round::Action const& action);
  // kUrgent and kUrgentAnswer.
  void received(Rank from, Message const& message);

  // Called when a step is complete on this rank.
  std::function<void(Clock step, Round::Report const& all)> on_complete;

  // No step that has ended here waits for its round.
  bool idle() const { return ended_.empty(); }
  // Owners of rows that this step reads and that have not all come.
  std::vector<Rank> awaited() const;

  std::uint64_t urgent_keys() const { return urgent_keys_; }

 private:
  // A batch of this rank that is announced and not yet complete.
  struct Announced {
    BatchPtr batch;
    bool told = false;               // its intents have gone out, with a round or urgently
    bool urgent = false;             // the latter
    std::size_t missing;             // parts of values that owners still have to send
    std::vector<Rank> unanswered{};  // owners that have been told urgently
  };
  // What another rank reads of this shard at a clock: row numbers, in its order; then its gradients.
  struct UsePart {
    TableId table{};
    std::shared_ptr<Array<Key>> keys;
    Array<std::uint32_t> ids;
    std::shared_ptr<Matrix<std::int64_t>> sums;
    std::shared_ptr<Array<std::uint32_t>> offsets;  // (ids + 1), where sightings count
  };
  struct Use {
    std::vector<UsePart> parts;
    bool urgent = false;
    bool named = false;  // its keys have come
  };
  using UseId = std::pair<Rank, Clock>;

  void begin_round();
  void send_in();
  void take_in(Rank from, Message const& message);
  void apply();
  void send_out();
  void take_out(Rank from, Message const& message);
  void complete();

  Intent intent_for(Rank owner, Prepared::Impl const& batch) const;
  void send_keys(Rank owner, BatchPtr const& batch, Section section, TrafficKind kind);
  void check_intent(Rank from, Intent const& intent, bool urgent) const;
  void take_keys(Rank from, Intent const& intent, Section section, bool urgent, std::function<void()> then);
  void send_gradients(Rank owner);
  void take_gradients(Rank from, UsePart& part, std::size_t number_of_part, std::function<void()> const& taken);
  void send_values(Rank to, Clock clock, Section section, TrafficKind kind);
  void take_values(Rank from, Clock clock, Section section, std::function<void()> then);
  void tell_urgently(Announced& announced);
  void answer_urgent(UseId const& use);
  void check_ready(Clock clock);
  std::string fault_of(Prepared::Impl const& batch);
  [[noreturn]] void refuse_peer(Rank peer, std::string const& what) const;

  Rank me_;
  int ranks_;
  Stream& stream_;
  Mail& mail_;
  Round& round_;
  std::vector<std::unique_ptr<TableShard>>& tables_;
  std::map<Clock, Announced> batches_;
  std::map<UseId, Use> uses_;
  std::map<Rank, std::size_t> parts_ahead_;  // of uses
  std::vector<UseId> unanswered_;            // urgent reads of a step that is not applied here yet
  struct Ended {
    BatchPtr batch;
    std::uint32_t signal;
  };
  std::deque<Ended> ended_;  // steps that wait for the round of an earlier one
  BatchPtr current_;         // the batch whose step has ended, until it is complete
  std::uint64_t urgent_keys_ = 0;
};

}  // namespace gpups::cache
