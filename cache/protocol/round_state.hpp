// SPDX-License-Identifier: Apache-2.0
// What the parts of the protocol of rounds share on one rank: the batches of this rank, and the lists of rows that
// other ranks read from it.
//
// The keys of a batch are sent once, in its intent. The owner sends their values and receives their gradients in the
// order of the keys in the intent, so these need no keys (docs/decisions/002-positional-exchange.md). If rows share
// scales (cache/wire/row_format.hpp), the order is the ascending order of the keys instead.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "cache/protocol/round.hpp"
#include "cache/protocol/store_messenger.hpp"
#include "cache/rows/table_shard.hpp"
#include "cache/wire/received_sums.hpp"

namespace gpups::cache {

using BatchPtr = std::shared_ptr<PreparedBatch::Impl>;

// A batch of this rank that is announced, and whose step is not complete.
struct PendingBatch {
  BatchPtr batch;
  bool sent_to_owners = false;     // its intents were sent, with a round or as late fetches
  bool is_late = false;            // they were sent as late fetches
  bool placed = false;             // its rows of other ranks have replicas
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

// The batch of another rank at a clock, as far as it reads rows of this rank.
struct ReaderBatch {
  std::vector<ReaderPart> parts;
  bool is_late = false;
  bool keys_received = false;
};
using ReaderBatchId = std::pair<Rank, Clock>;

// For the thread that makes progress. All references must outlive this object.
struct RoundState {
  Rank me;
  int ranks;
  Stream& stream;
  Stream on_host;  // for encoded keys
  StoreMessenger& messenger;
  Round& round;
  TableShards& tables;
  std::map<Clock, PendingBatch> batches{};
  std::map<ReaderBatchId, ReaderBatch> reader_batches{};
  BatchPtr current{};  // the batch whose round is in progress; null if the step has none

  TableShard& table(TableId id) const { return *tables[number(id)]; }
  // Returns all ranks but this one.
  std::vector<Rank> others() const;
  // Returns the other ranks that own rows of the batch.
  std::vector<Rank> owners_of(PreparedBatch::Impl const& batch) const;
  // Returns the step of the round in progress, as a number for tags.
  std::uint64_t step() const { return static_cast<std::uint64_t>(number(round.clock())); }
  // Throws PeerError: "rank 3 {what} ...".
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const;
};

// Returns true if `owner` owns rows of the batch.
bool owns_rows_of(PreparedBatch::Impl const& batch, Rank owner);

// Returns the keys of a part that `owner` owns, in the order of the intent.
Array<Key> wait_keys_on_wire(RoundState const& state, PreparedPart const& part, Rank owner);

}  // namespace gpups::cache
