// SPDX-License-Identifier: Apache-2.0
// The values of rows: sends those of this rank's rows to readers, and receives those of other ranks' rows. Tables with
// refresh compression send changes against mirrors. Other tables send whole values, but for rows that no step has
// updated yet: readers compute their initial values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cache/feedback/row_mirror.hpp"
#include "cache/protocol/residual_exchange.hpp"
#include "cache/protocol/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid values of peers.
class ValueExchange {
 public:
  // residuals: says when all changed values are sent, ignoring the filter. Both references must outlive this object.
  ValueExchange(RoundState& state, ResidualExchange const& residuals) : state_(state), residuals_(residuals) {}

  // Returns the size in bytes of a section that has `sent` of `rows` rows of a table: their values and, if not all rows
  // are sent or the table has refresh compression, a bitmap of the sent rows.
  static std::size_t bytes_of(TableOptions const& table, std::size_t sent, std::size_t rows);

  // Sends the values of the rows that a rank reads at a clock, for the refresh phase. message: the header, in which
  // this function sets the numbers of rows.
  void wait_send(ReaderBatchId const& to, Message message);
  // Answers a late fetch: sends the values of those of the rows that have this home.
  void wait_send_late(ReaderBatchId const& to, Rank home, Message message);

  // Receives the values that an owner sends for this rank's batch, and then calls `then`. The first call for a batch
  // places its replicas. tag: tag(section, number, 0). home: of the rows, for a late fetch; nullopt: the whole list.
  // sent: from the header.
  void receive(Rank from, PendingBatch& pending, std::uint64_t tag, std::optional<Rank> home,
               std::vector<std::uint64_t> const& sent, std::function<void()> then);

  // Frees the replicas that no later step uses, and what only the batch's step needs, when the step is complete.
  void wait_free_replicas(PreparedBatch::Impl& batch);

  // Drops the mirrors of erased rows. keys: distinct, of any owner. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Adds the mirrors that other ranks have of this rank's rows to its file of a checkpoint. Call it between steps.
  void wait_save(ResidualFile& file) const;
  // Loads this rank's mirrors of one rank's file, which was written by as many ranks.
  void wait_load(ResidualFile const& file);

 private:
  using Mirrors = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowMirror>>;

  // A section that has arrived, for rows of one part.
  struct ReceivedSection {
    std::size_t part = 0, sent = 0;  // rows that it has
    PreparedPart::ListSlice rows;    // of PreparedPart::replicas
    Array<std::uint8_t> bytes{};
  };
  void wait_place_replicas(PreparedBatch::Impl& batch);
  Array<std::uint8_t> wait_encode(ReaderBatchId const& to, ListPart const& part, std::uint64_t& sent);
  template <class Part>
  void wait_send_parts(ReaderBatchId const& to, std::vector<Part> const& parts, Message message, std::uint64_t tag,
                       TrafficKind kind);
  void wait_decode(Rank from, PreparedBatch::Impl const& batch, ReceivedSection const& section);
  void wait_decode_changes(Rank from, Clock clock, PreparedPart const& part, ReceivedSection const& section);
  RowMirror& mirror_of(Mirrors& all, Rank peer, TableId table);

  RoundState& state_;
  ResidualExchange const& residuals_;
  Mirrors sent_mirrors_, received_mirrors_;  // of this rank's rows, by reader; of other ranks' rows, by owner
};

}  // namespace gpups::cache
