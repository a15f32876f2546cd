// SPDX-License-Identifier: Apache-2.0
// The values of rows: sends those of this rank's rows to readers, and receives those of other ranks' rows. Tables with
// refresh compression send changes against mirrors, other tables send whole values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

  // Sends the values of the rows that a rank reads at a clock. message: the header, in which this function sets the
  // numbers of rows.
  void wait_send(ReaderBatchId const& to, Message message, Section section, TrafficKind kind);

  // Receives the values that an owner sends for this rank's batch of a clock, and then calls `then`. sent: from the
  // header.
  void receive(Rank from, Clock clock, Section section, std::vector<std::uint64_t> const& sent,
               std::function<void()> then);

  // Drops the mirrors of erased rows. keys: distinct, of any owner. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Adds the mirrors that other ranks have of this rank's rows to its file of a checkpoint. Call it between steps.
  void wait_save(ResidualFile& file) const;
  // Loads this rank's mirrors of one rank's file, which was written by as many ranks.
  void wait_load(ResidualFile const& file);

 private:
  using Mirrors = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowMirror>>;

  kernels::NumberView values_from(Rank owner, PreparedPart& part);
  RowMirror& mirror_of(Mirrors& all, Rank peer, TableId table);
  RowMirror::Changes wait_encode_changes(Rank reader, Clock clock, ReaderPart& part);
  void wait_decode_changes(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                           std::size_t sent);

  RoundState& state_;
  ResidualExchange const& residuals_;
  Mirrors sent_mirrors_, received_mirrors_;  // of this rank's rows, by reader; of other ranks' rows, by owner
};

}  // namespace gpups::cache
