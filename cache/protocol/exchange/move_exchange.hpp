// SPDX-License-Identifier: Apache-2.0
// The rows that move while ranks train: an owner passes them to the rank that owns them from the next step on, with
// their optimizer state and lifecycle. The old owner keeps a replica, and the new owner has had one, or makes one
// first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Throws PeerError for invalid rows of peers.
class MoveExchange {
 public:
  // `state` must outlive this object.
  explicit MoveExchange(RoundState& state) : state_(state) {}

  // The rows of one part for one reader, or of one part from one owner.
  struct MarkedRows {
    View<std::uint32_t> bitmap;
    View<std::uint32_t> listed;    // numbers of the rows that exist or, in a batch, their positions
    View<std::uint32_t> others{};  // positions of the others
  };
  // The marked rows of several lists, by rank and part.
  struct MarkedLists {
    Array<std::uint32_t> words, counts;
    std::vector<std::uint32_t> count;  // read from `counts`: for each part of each list; in a batch, also of the others
    std::map<Rank, std::vector<MarkedRows>> of;
    std::map<Rank, std::size_t> first;  // of a rank's counts
  };
  // The rows of all parts for one reader.
  struct PackedMoves {
    std::vector<std::uint64_t> sent;  // of each part
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };

  // -- the owner before the step --

  // Finds out which of the rows that move before a step exist. Queued on the stream. reads: the host reads the results
  // with these.
  void find_leaving(Clock clock, MarkedLists& leaving, kernels::HostReads& reads) const;
  // Packs these rows, by reader, and makes them replicas. Queued on the stream. REQUIRES: the reads are done, and the
  // values of the rows are packed for all readers.
  std::map<Rank, PackedMoves> pack(Clock clock, MarkedLists const& leaving);
  // Sends them, after the header of the refresh phase.
  void send(Rank reader, Clock clock, PackedMoves const& packed);

  // -- the owner in the step --

  // Receives the rows that a rank passes to this rank with a batch, and then calls `then`. sent: rows of each part,
  // from the header.
  void receive(Rank from, PendingBatch& pending, std::vector<std::uint64_t> const& sent, std::function<void()> then);
  // Finds out which of the received rows exist. Queued on the stream. reads: the host reads the results with these.
  void find_arrived(PendingBatch const& pending, MarkedLists& found, kernels::HostReads& reads) const;
  // Makes the rows of a batch that have arrived rows of this rank. Queued on the stream. REQUIRES: the reads are done,
  // and the rows have replicas.
  void write(PendingBatch& pending, MarkedLists const& found);

  // Returns the number of rows that this rank has passed to other ranks.
  std::uint64_t rows() const { return rows_; }

 private:
  TableShard::MovedColumns columns(TableId table, MovedBody::PartPlaces const& places, View<std::uint8_t> bytes) const;

  RoundState& state_;
  std::uint64_t rows_ = 0;
};

}  // namespace gpups::cache
