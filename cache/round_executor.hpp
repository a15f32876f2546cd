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

#include "cache/gradient_residuals.hpp"
#include "cache/key_dictionary.hpp"
#include "cache/prepared_batch.hpp"
#include "cache/round.hpp"
#include "cache/row_mirror.hpp"
#include "cache/store_messenger.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

using BatchPtr = std::shared_ptr<PreparedBatch::Impl>;

class RoundExecutor {
 public:
  // Only the thread that turns the round uses this object. `stream` is its own.
  RoundExecutor(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round& round,
                std::vector<std::unique_ptr<TableShard>>& tables);

  // This rank will read these rows: finds or reserves its own, and tells the owners of the others.
  void announce(BatchPtr const& batch);
  // The training thread has ended its next step: it has pushed this batch, or had none (null). Steps may end before
  // the round of an earlier one has.
  void end_step(BatchPtr const& batch, std::uint32_t signal);
  // Performs what the round says comes next.
  void execute(Round::Action const& action);
  // kLateFetch and kLateFetchReply.
  void on_message(Rank from, Message const& message);

  // Called when a step is complete on this rank.
  std::function<void(Clock step, Round::StepReport const& all)> on_complete;

  // With the step that ends next here all that gradients have been held back of goes to the owners.
  void flush_residuals() { flush_residuals_ = true; }

  // Nothing is held back or copied of these rows, of any owner, any more. Between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // What is held back, between steps, and what others have copies of, for a checkpoint.
  ResidualFile wait_save_residuals() const;
  // Takes what ranks have saved: on as many ranks each what was its own; on others owners take gradients for their
  // rows, which the next step applies, and copies begin anew. REQUIRES: nothing is held back or copied yet.
  void wait_load_residuals(ResidualFile const& file);

  // No step that has ended here waits for its round.
  bool idle() const { return ended_.empty(); }
  // Owners of rows that this step reads and that have not all come.
  std::vector<Rank> pending_peers() const;
  // The rank has not answered an late fetch for that step.
  bool lacks(Rank owner, Clock step) const;

  std::uint64_t late_keys() const { return late_keys_; }

 private:
  // A batch of this rank that is announced and not yet complete.
  struct PendingBatch {
    BatchPtr batch;
    bool sent_to_owners = false;     // its intents have gone out, with a round or late
    bool is_late = false;            // the latter
    std::size_t missing;             // parts of values that owners still have to send
    std::vector<Rank> unanswered{};  // owners that have been told late
  };
  // What another rank reads of this shard at a clock: row numbers, in its order; then its gradients.
  struct ReaderPart {
    TableId table{};
    std::uint64_t keys = 0;
    Array<std::uint32_t> ids{};
    std::shared_ptr<ReceivedSums> sums{}, occurrences{};
    Matrix<std::int64_t> counts{};  // of occurrences
    // Of tables that hold gradients back: a section, which stays until it is added, how many rows it has, and these. Of
    // those that send changes: the keys.
    std::shared_ptr<Array<std::uint8_t>> compressed{};
    std::size_t sent = 0;
    Matrix<std::int64_t> decoded_sums{};
    std::shared_ptr<Array<Key>> key_list{};
  };
  // Gradients of this shard's rows that their sender has held back.
  struct ReceivedFlush {
    Rank from;
    FlushedList rows;
    std::shared_ptr<Array<std::uint8_t>> keys;  // as they travelled, on the host
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };
  struct FlushedSums {
    Array<std::uint32_t> ids;
    Matrix<std::int64_t> sums;
    Array<std::int64_t> counts;
  };
  struct ReaderBatch {
    std::vector<ReaderPart> parts;
    bool is_late = false;
    bool keys_received = false;
  };
  using ReaderBatchId = std::pair<Rank, Clock>;

  void begin_round();
  void send_gradient_phase();
  void receive_gradient_phase(Rank from, Message const& message);
  void apply();
  void send_refresh_phase();
  void receive_refresh_phase(Rank from, Message const& message);
  void complete();

  // Keys that are on their way to an owner, or wait for the next round.
  struct OutgoingIntents {
    std::vector<Intent> intents;
    std::shared_ptr<std::vector<std::uint8_t>> bytes;  // as key_coding.hpp has them
  };
  // Other ranks that own rows of the batch.
  std::vector<Rank> owners_of(PreparedBatch::Impl const& batch) const;
  Intent intent_for(Rank owner, PreparedBatch::Impl const& batch) const;
  // Adds the batch's keys of this owner; they have numbers unless they are fetched late.
  void encode_intent(Rank owner, PreparedBatch::Impl& batch, bool is_late, OutgoingIntents& outgoing);
  void send_keys(Rank owner, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind);
  void check_intent(Rank from, Intent const& intent, bool is_late) const;
  void receive_intents(Rank from, Message const& message, bool is_late, std::function<void()> then);
  void wait_resolve(Rank from, Message const& message, bool is_late, std::string_view bytes);
  KeyEncoder& encoder_for(Rank owner, TableId table);
  KeyDecoder& decoder_for(Rank reader, TableId table);
  std::size_t dictionary_capacity(TableId table) const;
  std::vector<GradientBytes> send_gradients(Rank owner, std::vector<std::function<void()>>& sends);
  void check_gradients(Rank from, ReaderBatch const& use, std::vector<GradientBytes> const& sizes) const;
  void receive_gradients(Rank from, ReaderBatchId const& use, std::size_t part, GradientBytes const& sizes,
                         std::function<void()> const& taken);
  void receive_sums(Rank from, std::uint64_t tag, std::shared_ptr<ReceivedSums> const& sums, std::uint64_t bytes,
                    std::function<void()> then);
  Array<Key> wait_keys_on_wire(PreparedPart const& part, Rank owner);
  std::vector<FlushedList> send_flushed(Rank owner, std::vector<std::function<void()>>& sends);
  void receive_compressed(Rank from, ReaderPart& part, std::size_t number_of_part, GradientBytes const& sizes,
                          std::function<void()> const& taken);
  void check_flushed(Rank from, std::vector<FlushedList> const& flushed) const;
  void receive_flushed(Rank from, std::vector<FlushedList> const& flushed, std::function<void()> const& taken);
  RowSums wait_decode_compressed(Rank from, ReaderPart& part);
  RowSums resolved(std::vector<Key> const& keys, TableId table, FlushedSums& room);
  RowSums wait_read_restored(ResidualChunk const& chunk, FlushedSums& room);
  std::vector<Key> keys_of(ReceivedFlush const& part);
  RowSums wait_decode_flushed(ReceivedFlush const& part, FlushedSums& room);
  void send_values(Rank to, Message message, Section section, TrafficKind kind);
  void receive_refreshes(Rank from, Clock clock, Section section, std::vector<std::uint64_t> const& sent,
                         std::function<void()> then);
  using Mirrors = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowMirror>>;
  RowMirror& mirror_of(Mirrors& all, Rank peer, TableId table);
  RowMirror::Changes wait_encode_deltas(Rank reader, Clock clock, ReaderPart& part);
  void wait_decode_deltas(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                          std::size_t sent);
  void fetch_late(PendingBatch& announced);
  void reply_late(ReaderBatchId const& use);
  void check_ready(Clock clock);
  std::string fault_of(PreparedBatch::Impl const& batch);
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const;

  Rank me_;
  int ranks_;
  Stream& stream_;
  Stream on_host_;  // for keys on their way
  StoreMessenger& messenger_;
  Round& round_;
  std::vector<std::unique_ptr<TableShard>>& tables_;
  GradientResiduals residuals_;
  std::vector<ReceivedFlush> flushed_;       // of this step, from all ranks
  std::vector<ResidualChunk> restored_;      // for this rank's own rows, with the next step that is applied
  std::size_t samples_ = 0;                  // over all ranks, of the last step that had some
  Mirrors sent_mirrors_, received_mirrors_;  // of this rank's rows, by who has them; of other ranks' rows here
  std::map<Clock, PendingBatch> batches_;
  std::map<ReaderBatchId, ReaderBatch> reader_batches_;
  std::map<Rank, OutgoingIntents> outgoing_;  // with the next kGradientPhase
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
  std::map<std::pair<Rank, TableId>, KeyDecoder> decoders_;
  std::map<Rank, std::size_t> parts_ahead_;  // of uses
  std::vector<ReaderBatchId> unanswered_;    // late fetches of a step that is not applied here yet
  struct EndedStep {
    BatchPtr batch;
    std::uint32_t signal;
    bool flush_residuals;
  };
  std::deque<EndedStep> ended_;      // steps that wait for the round of an earlier one
  bool flush_residuals_ = false;     // for the step that ends next
  bool resends_all_values_ = false;  // of values, after a step that sent all that was held back
  BatchPtr current_;                 // the batch whose step has ended, until it is complete
  std::uint64_t late_keys_ = 0;
};

}  // namespace gpups::cache
