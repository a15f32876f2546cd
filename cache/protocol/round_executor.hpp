// SPDX-License-Identifier: Apache-2.0
// Executes the actions of a round on one rank, and keeps its data: the batches of this rank, the intents of other
// ranks, residuals, mirrors and key dictionaries.
//
// The keys of a batch are sent once, in its intent. The owner sends their values and receives their gradients in the
// order of the keys in the intent, so these need no keys (docs/decisions/002-positional-exchange.md). If rows share
// scales (cache/wire/row_format.hpp), the order is the ascending order of the keys instead.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "cache/feedback/gradient_residuals.hpp"
#include "cache/feedback/row_mirror.hpp"
#include "cache/protocol/round.hpp"
#include "cache/protocol/store_messenger.hpp"
#include "cache/rows/table_shard.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

using BatchPtr = std::shared_ptr<PreparedBatch::Impl>;

// Sends, receives and applies gradients, intents and values. For the thread that makes progress. Functions with `wait`
// in their names block until `stream` is done; none waits for other ranks. PeerErrors report invalid messages of peers.
class RoundExecutor {
 public:
  // stream: used only by this object and by the thread that makes progress. All references must outlive this object.
  RoundExecutor(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round& round,
                std::vector<std::unique_ptr<TableShard>>& tables);

  // Announces a batch of this rank: finds or reserves the rows that this rank owns, and queues intents for the owners
  // of the others. If the batch is too late for a round, fetches their values at once (late fetch).
  void announce(BatchPtr const& batch);
  // Ends the next step of the training thread. batch: the pushed batch, null if the step had none. If the round of an
  // earlier step is still in progress, the step waits in a queue.
  void end_step(BatchPtr const& batch, std::uint32_t signal);
  // Executes an action of Round::next().
  void execute(Round::Action const& action);
  // Handles a message of kind kLateFetch or kLateFetchReply. Throws PeerError if it is invalid.
  void on_message(Rank from, Message const& message);

  // Called when a step is complete on this rank.
  std::function<void(Clock step, Round::StepReport const& all)> on_complete;

  // Makes the step that ends next send all residuals of gradients to the owners; see Store::flush_residuals().
  void flush_residuals() { flush_residuals_ = true; }

  // Drops the residuals and the mirrors of erased rows. keys: distinct, of any owner. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Returns the residuals of this rank's gradients and the mirrors that other ranks have of its rows, for a checkpoint.
  // Call it between steps.
  ResidualFile wait_save_residuals() const;
  // Loads this rank's share of one rank's file. If the number of ranks is that of the checkpoint, each rank continues
  // with its own residuals and mirrors. Otherwise owners take over the residuals of their rows, which the next applied
  // step adds, and mirrors start from initial values. Call it for the files of all ranks. REQUIRES: there are no other
  // residuals or mirrors.
  void wait_load_residuals(ResidualFile const& file);

  // Returns true if no ended step waits for its round.
  bool idle() const { return ended_.empty(); }
  // Returns the owners of the rows that this step reads, if not all of these rows have arrived.
  std::vector<Rank> pending_peers() const;
  // Returns true if `owner` has not answered a late fetch of this rank for `step`.
  bool lacks(Rank owner, Clock step) const;

  // Returns the number of keys that were fetched late.
  std::uint64_t late_keys() const { return late_keys_; }

 private:
  // A batch of this rank that is announced, and whose step is not complete.
  struct PendingBatch {
    BatchPtr batch;
    bool sent_to_owners = false;     // its intents were sent, with a round or as late fetches
    bool is_late = false;            // they were sent as late fetches
    std::size_t missing;             // value sections that have not arrived
    std::vector<Rank> unanswered{};  // owners that have not answered a late fetch
  };
  // The rows of one table that another rank reads from this rank at a clock, in the order of its intent, and the
  // gradients that it sends for them.
  struct ReaderPart {
    TableId table{};
    std::uint64_t keys = 0;
    Array<std::uint32_t> ids{};
    std::shared_ptr<ReceivedSums> sums{}, occurrences{};
    Matrix<std::int64_t> counts{};  // decoded occurrences
    // For tables with gradient compression:
    std::shared_ptr<Array<std::uint8_t>> compressed{};  // the gradient section, kept until its rows are added
    std::size_t sent = 0;                               // rows in it
    Matrix<std::int64_t> decoded_sums{};                // (sent, dim)
    std::shared_ptr<Array<Key>> key_list{};             // the keys, for tables with refresh compression
  };
  // Flushed residuals of rows of this shard, from one rank.
  struct ReceivedFlush {
    Rank from;
    FlushedList rows;
    std::shared_ptr<Array<std::uint8_t>> keys;   // encoded keys, on the host
    std::shared_ptr<Array<std::uint8_t>> bytes;  // encoded sums, on the stream's device
  };
  // Memory for decoded flushed or restored residuals. `counts` is zero: residuals are no occurrences.
  struct FlushedSums {
    Array<std::uint32_t> ids;
    Matrix<std::int64_t> sums;
    Array<std::int64_t> counts;
  };
  // The batch of another rank at a clock, as far as it reads rows of this rank.
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

  // Intents for one owner, with their encoded keys.
  struct OutgoingIntents {
    std::vector<Intent> intents;
    std::shared_ptr<std::vector<std::uint8_t>> bytes;  // in the format of key_coding.hpp
  };
  // Returns the other ranks that own rows of the batch.
  std::vector<Rank> owners_of(PreparedBatch::Impl const& batch) const;
  // Returns the intent for one owner; it has no parts if the owner has no row of the batch.
  Intent intent_for(Rank owner, PreparedBatch::Impl const& batch) const;
  // Encodes the batch's keys of this owner and appends them to `outgoing`. Sets PreparedPart::remote_positions. Late
  // fetches do not use the key dictionary, because they are not ordered with the rounds.
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
  kernels::NumberView values_from(Rank owner, PreparedPart& part);
  using Mirrors = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowMirror>>;
  RowMirror& mirror_of(Mirrors& all, Rank peer, TableId table);
  RowMirror::Changes wait_encode_deltas(Rank reader, Clock clock, ReaderPart& part);
  void wait_decode_deltas(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                          std::size_t sent);
  void fetch_late(PendingBatch& announced);
  void reply_late(ReaderBatchId const& use);
  void check_ready(Clock clock);
  std::string rejection_of(PreparedBatch::Impl const& batch);
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const;

  Rank me_;
  int ranks_;
  Stream& stream_;
  Stream on_host_;  // for encoded keys
  StoreMessenger& messenger_;
  Round& round_;
  std::vector<std::unique_ptr<TableShard>>& tables_;
  GradientResiduals residuals_;
  std::vector<ReceivedFlush> flushed_;   // flushed residuals of this step, from all ranks
  std::vector<ResidualChunk> restored_;  // residuals of this rank's rows from a checkpoint, for the next applied step
  std::size_t samples_ = 0;              // over all ranks, in the last step with samples
  Mirrors sent_mirrors_, received_mirrors_;  // of this rank's rows, by reader; of other ranks' rows, by owner
  std::map<Clock, PendingBatch> batches_;
  std::map<ReaderBatchId, ReaderBatch> reader_batches_;
  std::map<Rank, OutgoingIntents> outgoing_;  // by owner: sent with the next kGradientPhase
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
  std::map<std::pair<Rank, TableId>, KeyDecoder> decoders_;
  std::map<Rank, std::size_t> parts_ahead_;  // by reader: number of parts in reader_batches_
  std::vector<ReaderBatchId> unanswered_;    // late fetches that wait until the step before theirs is applied here
  struct EndedStep {
    BatchPtr batch;
    std::uint32_t signal;
    bool flush_residuals;
  };
  std::deque<EndedStep> ended_;      // ended steps that wait for the round of an earlier step
  bool flush_residuals_ = false;     // for the step that ends next
  bool resends_all_values_ = false;  // the applied step flushed residuals: send all changed values, ignoring the filter
  BatchPtr current_;                 // the batch whose round is in progress
  std::uint64_t late_keys_ = 0;
};

}  // namespace gpups::cache
