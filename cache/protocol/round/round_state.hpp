// SPDX-License-Identifier: Apache-2.0
// What the parts of the protocol of rounds share on one rank: the batches of this rank, and the lists of rows that
// other ranks read from it.
//
// The keys of a batch are sent once, in its intents, to their homes. For each reader, clock and owner, both ends have
// the same list of rows, so values and gradients need no keys (docs/decisions/002-positional-exchange.md). A list is in
// the ascending order of its keys, whichever the homes of its rows. The answers to late fetches are lists for each
// home. Values come from the owners before the step, and gradients go to the owners in it: if rows move in the step,
// there is a list for each, and one for the rows that move to the reader.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "cache/placement/owner_directory.hpp"
#include "cache/placement/policy.hpp"
#include "cache/protocol/round/round.hpp"
#include "cache/protocol/round/row_bodies.hpp"
#include "cache/rows/table_shard.hpp"
#include "cache/wire/list_keys.hpp"
#include "cache/wire/received_sums.hpp"
#include "cache/wire/route_columns.hpp"
#include "cache/wire/store_messenger.hpp"
#include "kernels/runtime/host_reads.hpp"

namespace gpups::cache {

using BatchPtr = std::shared_ptr<PreparedBatch::Impl>;

// Rows of a part's PreparedPart::reads: those from `first` on, or those at `places`, if there are any.
struct ReadRows {
  std::size_t first = 0, size = 0;
  View<std::uint32_t const> places{};  // (size)
};

// The values that an owner has sent for a batch of this rank.
struct ReceivedValues {
  Rank from{};
  ValueBody body;
  std::vector<ReadRows> rows;     // of each part
  std::vector<std::size_t> sent;  // of these, the rows whose values are in `bytes`
  Array<std::uint8_t> bytes{};
};

// The rows that an owner passes to this rank with a batch.
struct ArrivedRows {
  Rank from{};
  MovedBody body;
  Array<std::uint8_t> bytes{};
};

// The answers to late fetches come from each owner for each home by themselves. The places of the rows of an answer in
// PreparedPart::reads.
struct LateAnswers {
  PositionList places{};
  std::vector<std::uint32_t> first{};  // (ranks * ranks + 1): list owner * ranks + home begins at places[first[...]]
};

// A batch of this rank that is announced, and whose step is not complete.
struct PendingBatch {
  BatchPtr batch;
  bool sent = false;     // its intents were sent, with a round or as late fetches
  bool is_late = false;  // they were sent as late fetches
  // From each home: the owners of the rows of its intent. No entry: it owns all of these rows itself.
  std::map<Rank, BatchRoute> routes{};
  bool routed = false;                                    // the lists of owners are complete
  bool placed = false;                                    // rows that other ranks own have replicas
  std::vector<std::shared_ptr<ReceivedValues>> values{};  // that are not decoded, in the order of their headers
  std::vector<std::shared_ptr<ArrivedRows>> arrived{};    // that are not decoded
  std::size_t fetches{};                                  // late fetches whose values have not arrived
  // By part with rows that are away from their homes.
  std::map<std::size_t, LateAnswers> late_answers{};
  // Under bounded staleness: keys of other homes that the samples use without an announcement, less those that are
  // announced only because gradients have waited.
  std::int64_t unannounced = 0;
};

// The rows of one table in a list, in its order. Their numbers are found by RowFinder.
struct ListPart {
  TableId table{};
  View<std::uint32_t const> ids{};
  View<Key const> keys{};
  std::shared_ptr<Array<std::uint32_t>> ids_memory{};  // which lists share
  std::shared_ptr<Array<Key>> keys_memory{};           // the same
};

// The rows of a list that a reader sends gradients for, and these gradients.
struct UpdatedPart : ListPart {
  std::size_t count = 0;  // of the rows
  std::optional<ReceivedSums> sums{}, occurrences{};
  Matrix<std::int64_t> counts{};  // decoded occurrences
  // For tables with gradient compression:
  std::shared_ptr<Array<std::uint8_t>> compressed{};  // the gradient section, kept until its rows are added
  std::size_t sent = 0;                               // rows in it
  Matrix<std::int64_t> decoded_sums{};                // (sent, dim)
};

// The keys of a reader's batch that one home has announced or forwarded to this rank, by role and part. Roles without
// keys may have no parts.
using KeysByRole = std::array<std::vector<ListKeys>, kRowRoles>;

// The keys of a reader's batch that have one home and this rank as an owner.
struct HomeList {
  std::vector<TableId> tables{};  // of the parts
  std::set<RowRole> announced{};  // roles with a list
  KeysByRole keys{};
  bool keys_received = false;

  std::vector<ListKeys> const& of(RowRole role) const { return keys[static_cast<std::size_t>(role)]; }
};

// The batch of another rank at a clock, as far as this rank owns its rows.
struct ReaderBatch {
  std::map<Rank, HomeList> homes;
  std::vector<ListPart> reads{}, moves{};       // of all homes together, when their rows are found
  std::vector<UpdatedPart> updates{};           // from join_updates() on
  std::shared_ptr<Array<std::uint8_t>> body{};  // packed gradients, of which the parts have views
  bool is_late = false;
};
using ReaderBatchId = std::pair<Rank, Clock>;

// By rank: whether this rank sends plain keys to it, and receives plain keys from it. The others use key dictionaries.
struct PlainKeys {
  std::vector<bool> sent_to, received_from;
};

// For the thread that makes progress. All references must outlive this object.
struct RoundState {
  Rank me;
  int ranks;
  Stream& stream;
  Stream on_host;  // for encoded keys
  StoreMessenger& messenger;
  Round& round;
  TableShards& tables;
  OwnerDirectories& placement;
  PlacementRules rules{};
  Array<std::uint32_t> hosts{};            // those of `rules`, on the device
  std::atomic<bool> has_restored = false;  // restored residuals are not added yet: no push updates rows
  PlainKeys plain_keys{};
  std::int64_t staleness = 0;  // the most steps by which a read may be behind; 0 in a group of one rank
  std::map<Clock, PendingBatch> batches{};
  std::map<ReaderBatchId, ReaderBatch> reader_batches{};
  BatchPtr current{};                  // the batch whose round is in progress; null if the step has none
  std::uint64_t remote_keys = 0;       // rows of all routed batches that other ranks own
  std::uint64_t remote_home_keys = 0;  // those whose homes are other ranks

  TableShard& table(TableId id) const { return *tables[number(id)]; }
  // Returns the capacity of a key dictionary, of which there is one for each other rank. plain: keys travel without it.
  std::size_t dictionary_capacity(TableId id, bool plain) const {
    return plain ? 0 : table(id).options().dictionary_keys / static_cast<std::size_t>(ranks - 1);
  }
  // Returns whether rows move while training.
  bool rows_move() const { return rules.policy != PlacementPolicy::kStatic; }
  // Returns all ranks but this one.
  std::vector<Rank> others() const;
  // Returns the step of the round in progress, as a number for tags.
  std::uint64_t step() const { return static_cast<std::uint64_t>(number(round.clock())); }
  // Throws PeerError: "rank 3 {what} ...".
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const {
    cache::throw_peer_error(peer, me, what);
  }
};

// Returns the rows whose values `from` sends: all, or those of a late fetch, for a home.
ReadRows read_rows(PendingBatch const& pending, std::size_t part, Rank from, std::optional<Rank> late_home);

// Returns true if the list of `rank` has rows in a part.
bool has_list(PreparedBatch::Impl const& batch, RankLists PreparedPart::*lists, Rank rank);

// Returns true if all rows of the batch have numbers and values, so that its step can begin. For assertions.
bool has_rows(PendingBatch const& pending);

// Returns the keys at these positions of a part. Queued on `stream`.
Array<Key> keys_at(Stream& stream, PreparedPart const& part, View<std::uint32_t const> positions);

// Returns the elements of rows, of a column of PreparedPart::reads. room: for elements that are not one after another.
// Queued on `stream`.
View<std::uint32_t const> take_rows(Stream& stream, View<std::uint32_t const> column, ReadRows const& rows,
                                    std::deque<Array<std::uint32_t>>& room);

// What this rank does with rows: it sends their values, gets their gradients, or passes them to the reader.
inline constexpr RowRole kReadRoles[] = {RowRole::kReadAndUpdate, RowRole::kRead};
inline constexpr RowRole kUpdateRoles[] = {RowRole::kReadAndUpdate, RowRole::kUpdate};
inline constexpr RowRole kMoveRoles[] = {RowRole::kMove};

// Returns whether a list has keys.
bool has_keys(std::vector<ListKeys> const& parts);
// Returns whether homes have announced rows with one of these roles: they may have forwarded all of them.
bool has_rows(ReaderBatch const& batch, std::span<RowRole const> roles);
// Returns the keys of a part with these roles: ascending pieces, from each home.
std::vector<View<Key const>> keys_of(ReaderBatch const& batch, std::span<RowRole const> roles, std::size_t part);
// Returns the number of parts of the batch; 0 if no home has announced it.
std::size_t parts_of(ReaderBatch const& batch);
// Returns the same parts, without keys.
std::vector<PartKeys> without_keys(std::vector<PartKeys> const& parts);

// Joins the lists of updates of all homes; does nothing if they are joined.
void join_updates(ReaderBatch& batch);

}  // namespace gpups::cache
