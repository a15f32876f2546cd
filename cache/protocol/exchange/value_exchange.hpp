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
#include "cache/protocol/exchange/residual_exchange.hpp"
#include "cache/protocol/round/round_state.hpp"
#include "cache/protocol/round/row_bodies.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid values of peers.
class ValueExchange {
 public:
  // residuals: says when all changed values are sent, ignoring the filter. Both references must outlive this object.
  ValueExchange(RoundState& state, ResidualExchange const& residuals) : state_(state), residuals_(residuals) {}

  // The rows of a list that exist: for each part a bitmap and their numbers. Empty for parts with refresh compression.
  struct ExistingRows {
    std::vector<View<std::uint32_t>> bitmaps, ids;
    std::size_t first = 0;  // of the counts of its parts
  };
  // The existing rows of several lists.
  struct ExistingLists {
    Array<std::uint32_t> words, counts;
    std::vector<std::uint32_t> count;  // read from `counts`: a number for each part of each list
    std::map<Rank, ExistingRows> of;   // by reader
  };
  // The values of all parts for one reader.
  struct PackedValues {
    std::vector<std::uint64_t> sent;  // rows of each part; empty: all rows
    std::size_t parts = 0;
    std::size_t plain = 0;  // bytes without compression
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };

  // Finds the rows that exist among those that other ranks read at a clock. Queued on the stream. reads: the host reads
  // the results with these.
  void find_existing(Clock clock, ExistingLists& existing, kernels::HostReads& reads) const;
  // Packs the values of these rows, by reader. REQUIRES: the reads are done.
  std::map<Rank, PackedValues> wait_pack(Clock clock, ExistingLists const& existing);
  // Sends them, after the header of the refresh phase. clock: of the step that reads them.
  void send(Rank reader, Clock clock, PackedValues const& packed);
  // Answers a late fetch: sends the values of rows. reply: the header, in which this function sets the numbers of rows.
  void wait_send_late(ReaderBatchId const& to, std::vector<ListPart> const& parts, LateFetchReply reply);

  // Receives the values that an owner sends for this rank's batch, and then calls `then`. tag: of the transfer. home:
  // of the rows, for a late fetch; nullopt: the whole list. sent: from the header.
  void receive(Rank from, PendingBatch& pending, std::uint64_t tag, std::optional<Rank> home,
               std::vector<std::uint64_t> const& sent, std::function<void()> then);
  // Places the replicas of a batch, and decodes the values that were received for it. reads: other results that the
  // host reads, with the same wait. REQUIRES: all values have arrived.
  void wait_decode(PendingBatch& pending, kernels::HostReads& reads);
  void wait_decode(PendingBatch& pending) {
    kernels::HostReads none(state_.stream);
    wait_decode(pending, none);
  }

  // Drops the mirrors of erased rows. keys: distinct, of any owner. Call it between steps.
  void wait_drop(TableId table, View<Key const> keys);
  // Adds the mirrors that other ranks have of this rank's rows to its file of a checkpoint. Call it between steps.
  void wait_save(ResidualFile& file) const;
  // Loads this rank's mirrors of one rank's file, which was written by as many ranks.
  void wait_load(ResidualFile const& file);

 private:
  using Mirrors = std::map<std::pair<Rank, TableId>, std::unique_ptr<RowMirror>>;

  void find_existing(std::map<Rank, std::vector<ListPart> const*> const& lists, ExistingLists& existing,
                     kernels::HostReads& reads) const;
  PackedValues wait_pack_parts(ReaderBatchId const& to, std::vector<ListPart> const& parts,
                               ExistingLists const& existing, std::vector<kernels::GatherNumbers>& gathers);
  void send_packed(Rank to, PackedValues const& packed, std::uint64_t tag, TrafficKind kind);
  // What an owner has sent for a batch is decoded together with what other owners have sent. The functions queue their
  // work on the stream, unless their names have `wait`.
  struct DecodedBatch;
  void find_replicas(PendingBatch& pending, DecodedBatch& decoded);
  void find_sent(PendingBatch const& pending, DecodedBatch& decoded);
  void write_replicas(PendingBatch const& pending, DecodedBatch const& decoded);
  void wait_decode_changes(PreparedBatch::Impl const& batch, ReceivedValues const& values, std::size_t part);
  RowMirror& mirror_of(Mirrors& all, Rank peer, TableId table);

  RoundState& state_;
  ResidualExchange const& residuals_;
  Mirrors sent_mirrors_, received_mirrors_;  // of this rank's rows, by reader; of other ranks' rows, by owner
};

}  // namespace gpups::cache
