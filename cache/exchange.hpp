// SPDX-License-Identifier: Apache-2.0
// The round's data on one rank: whose batches name which rows, and the executor of the round's actions.
//
// A reader's intent names the keys of a batch once. The order in which they travel, or for rows that share scales that
// of the keys' values, is then that in which the owner sends their values and receives their gradients, so neither
// carries keys.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/held_gradients.hpp"
#include "cache/key_dictionary.hpp"
#include "cache/mail.hpp"
#include "cache/prepared.hpp"
#include "cache/round.hpp"
#include "cache/row_copies.hpp"
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

  // With the step that ends next here all that gradients have been held back of goes to the owners.
  void send_all_held() { send_all_held_ = true; }

  // Nothing is held back or copied of these rows, of any owner, any more. Between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // What is held back, between steps, and what others have copies of, for a checkpoint.
  HeldFile wait_save_held() const;
  // Takes what ranks have saved: on as many ranks each what was its own; on others owners take gradients for their
  // rows, which the next step applies, and copies begin anew. REQUIRES: nothing is held back or copied yet.
  void wait_load_held(HeldFile const& file);

  // No step that has ended here waits for its round.
  bool idle() const { return ended_.empty(); }
  // Owners of rows that this step reads and that have not all come.
  std::vector<Rank> awaited() const;
  // The rank has not answered an urgent read for that step.
  bool lacks(Rank owner, Clock step) const;

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
    std::uint64_t keys = 0;
    Array<std::uint32_t> ids{};
    std::shared_ptr<ReceivedSums> sums{}, sightings{};
    Matrix<std::int64_t> counts{};  // of sightings
    // Of tables that hold gradients back: a section, which stays until it is added, how many rows it has, and these. Of
    // those that send changes: the keys.
    std::shared_ptr<Array<std::uint8_t>> held{};
    std::size_t sent = 0;
    Matrix<std::int64_t> held_sums{};
    std::shared_ptr<Array<Key>> key_list{};
  };
  // Gradients of this shard's rows that their sender has held back.
  struct LatePart {
    Rank from;
    LateRows rows;
    std::shared_ptr<Array<std::uint8_t>> keys;  // as they travelled, on the host
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };
  struct LateSums {
    Array<std::uint32_t> ids;
    Matrix<std::int64_t> sums;
    Array<std::int64_t> counts;
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

  // Keys that are on their way to an owner, or wait for the next round.
  struct Outgoing {
    std::vector<Intent> intents;
    std::shared_ptr<std::vector<std::uint8_t>> bytes;  // as key_coding.hpp has them
  };
  // Other ranks that own rows of the batch.
  std::vector<Rank> owners_of(Prepared::Impl const& batch) const;
  Intent intent_for(Rank owner, Prepared::Impl const& batch) const;
  // Adds the batch's keys of this owner; they have numbers unless they are read urgently.
  void name_keys(Rank owner, Prepared::Impl& batch, bool urgent, Outgoing& outgoing);
  void send_keys(Rank owner, Outgoing const& outgoing, std::uint64_t tag, TrafficKind kind);
  void check_intent(Rank from, Intent const& intent, bool urgent) const;
  void take_keys(Rank from, Message const& message, bool urgent, std::function<void()> then);
  void wait_resolve(Rank from, Message const& message, bool urgent, std::string_view bytes);
  NamedKeys& named_to(Rank owner, TableId table);
  HeardKeys& heard_from(Rank reader, TableId table);
  std::size_t dictionary_capacity(TableId table) const;
  std::vector<GradientBytes> send_gradients(Rank owner, std::vector<std::function<void()>>& sends);
  void check_gradients(Rank from, Use const& use, std::vector<GradientBytes> const& sizes) const;
  void take_gradients(Rank from, UseId const& use, std::size_t part, GradientBytes const& sizes,
                      std::function<void()> const& taken);
  void take_sums(Rank from, std::uint64_t tag, std::shared_ptr<ReceivedSums> const& sums, std::uint64_t bytes,
                 std::function<void()> then);
  Array<Key> wait_keys_on_wire(PreparedPart const& part, Rank owner);
  std::vector<LateRows> send_late(Rank owner, std::vector<std::function<void()>>& sends);
  void take_held(Rank from, UsePart& part, std::size_t number_of_part, GradientBytes const& sizes,
                 std::function<void()> const& taken);
  void check_late(Rank from, std::vector<LateRows> const& late) const;
  void take_late(Rank from, std::vector<LateRows> const& late, std::function<void()> const& taken);
  RowSums wait_read_held(Rank from, UsePart& part);
  RowSums resolved(std::vector<Key> const& keys, TableId table, LateSums& room);
  RowSums wait_read_restored(HeldPiece const& piece, LateSums& room);
  std::vector<Key> keys_of(LatePart const& part);
  RowSums wait_read_late(LatePart const& part, LateSums& room);
  void send_values(Rank to, Message message, Section section, TrafficKind kind);
  void take_values(Rank from, Clock clock, Section section, std::vector<std::uint64_t> const& sent,
                   std::function<void()> then);
  using Copies = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowCopies>>;
  RowCopies& copies_of(Copies& all, Rank peer, TableId table);
  RowCopies::Part wait_take_changes(Rank reader, Clock clock, UsePart& part);
  void wait_read_changes(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                         std::size_t sent);
  void tell_urgently(Announced& announced);
  void answer_urgent(UseId const& use);
  void check_ready(Clock clock);
  std::string fault_of(Prepared::Impl const& batch);
  [[noreturn]] void refuse_peer(Rank peer, std::string const& what) const;

  Rank me_;
  int ranks_;
  Stream& stream_;
  Stream on_host_;  // for keys on their way
  Mail& mail_;
  Round& round_;
  std::vector<std::unique_ptr<TableShard>>& tables_;
  HeldGradients held_;
  std::vector<LatePart> late_;        // of this step, from all ranks
  std::vector<HeldPiece> restored_;   // for this rank's own rows, with the next step that is applied
  std::size_t samples_ = 0;           // over all ranks, of the last step that had some
  Copies sent_copies_, read_copies_;  // of this rank's rows, by who has them; of other ranks' rows here
  std::map<Clock, Announced> batches_;
  std::map<UseId, Use> uses_;
  std::map<Rank, Outgoing> outgoing_;  // with the next kIn
  std::map<std::pair<Rank, TableId>, NamedKeys> named_;
  std::map<std::pair<Rank, TableId>, HeardKeys> heard_;
  std::map<Rank, std::size_t> parts_ahead_;  // of uses
  std::vector<UseId> unanswered_;            // urgent reads of a step that is not applied here yet
  struct Ended {
    BatchPtr batch;
    std::uint32_t signal;
    bool send_all_held;
  };
  std::deque<Ended> ended_;         // steps that wait for the round of an earlier one
  bool send_all_held_ = false;      // for the step that ends next
  bool sends_all_changes_ = false;  // of values, after a step that sent all that was held back
  BatchPtr current_;                // the batch whose step has ended, until it is complete
  std::uint64_t urgent_keys_ = 0;
};

}  // namespace gpups::cache
