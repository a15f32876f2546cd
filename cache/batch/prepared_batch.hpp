// SPDX-License-Identifier: Apache-2.0
// The data of BatchPattern and PreparedBatch. A pattern has the distinct keys of each part, grouped by home, and its
// entries as a sparse matrix; batches of several steps may share it. A prepared batch adds the numbers of its rows in
// this rank's shards, and the sums of push().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpups/store.hpp"

namespace gpups::cache {

// One part of a pattern. Views refer to arrays of BatchPattern::Impl.
struct PatternPart {
  TableId table{};
  std::size_t entries = 0;
  std::size_t rows = 0;
  std::vector<std::uint32_t> homes;  // (ranks + 1): keys of home q are homes[q] .. homes[q + 1] - 1
  View<Key> keys;                    // (rows)
  View<std::uint32_t> positions;     // (entries): the row of each entry
  View<std::uint32_t> offsets;       // (rows + 1): entries of row r are order[offsets[r]] .. order[offsets[r + 1] - 1]
  View<std::uint32_t> order;         // (entries): entries sorted by row
  Array<std::uint32_t> bags;         // (bags + 1): bag offsets; empty for parts that are not pooled
  Array<std::uint32_t> bag_of;       // (entries): the bag of each entry; empty for parts that are not pooled
};

// Positions in a part of a batch, on the store's device, in memory that lists share.
struct PositionList {
  View<std::uint32_t> positions{};
  std::shared_ptr<Array<std::uint32_t> const> memory{};

  std::size_t size() const { return positions.size(); }
};
// The same in a list for each rank, in the ascending order of their keys.
struct RankLists : PositionList {
  std::vector<std::uint32_t> first{};  // (ranks + 1): list q is positions[first[q]] .. positions[first[q + 1] - 1]

  std::size_t size_of(Rank rank) const { return first.empty() ? 0 : first[number(rank) + 1] - first[number(rank)]; }
  View<std::uint32_t> of(Rank rank) const {
    return positions.slice(first.empty() ? 0 : first[number(rank)], size_of(rank));
  }
};

// One part of a prepared batch.
struct PreparedPart {
  // `pattern` must outlive this object.
  explicit PreparedPart(PatternPart const& pattern)
      : table(pattern.table),
        entries(pattern.entries),
        rows(pattern.rows),
        homes(pattern.homes),
        keys(pattern.keys),
        positions(pattern.positions),
        offsets(pattern.offsets),
        order(pattern.order),
        bags(pattern.bags),
        bag_of(pattern.bag_of) {}

  // From the pattern.
  TableId table;
  std::size_t entries, rows;
  std::span<std::uint32_t const> homes;
  View<Key const> keys;
  View<std::uint32_t const> positions, offsets, order, bags, bag_of;

  bool pooled_by_mean = false;  // by the last pull_pooled()

  // Set in progress(). This rank's rows get their numbers when the routes of the batch are known, replicas before their
  // values arrive.
  Array<std::uint32_t> ids;  // (rows): their numbers in this rank's shard
  // The rows whose home is this rank, in the ascending order of their keys; if rows move or have moved.
  PositionList own_order;
  // The rows whose values other ranks send, by that rank: their owners before the step. Until the routes are known,
  // list q has the rows whose home is rank q, as the intent has them.
  RankLists reads;
  // The rows whose gradients are sent to other ranks, their owners in the step, if these are others than those of
  // `reads`.
  std::optional<RankLists> other_updates;
  // The rows that this rank owns from this step on, by their owner before. A row that several parts use arrives with
  // the first of them.
  RankLists arriving;
  // Rows that get numbers although nothing arrives for them: those that this rank owns until this step, and those that
  // arrive with another part.
  PositionList placed;
  // The rows that this rank owns in this step, if they are not those of its home.
  std::optional<PositionList> local_positions;
  View<std::uint32_t> replicas;  // ids[reads.positions[i]], while the step needs them
  std::shared_ptr<Array<std::uint32_t> const> replicas_memory;

  // Set by push().
  Matrix<std::int64_t> sums;  // (rows, dim)
  bool applied = false;       // push() has updated the rows directly, without sums

  // Frees what only the batch's step needs.
  void end_step() {
    replicas = {};
    replicas_memory.reset();
    sums = {};
  }

  RankLists const& updates() const { return other_updates ? *other_updates : reads; }

  // The rows of a home.
  std::size_t rows_at(Rank home) const { return homes[number(home) + 1] - homes[number(home)]; }
  View<Key const> keys_at(Rank home) const { return keys.slice(homes[number(home)], rows_at(home)); }
  View<std::uint32_t> ids_at(Rank home) const { return ids.view().slice(homes[number(home)], rows_at(home)); }
  View<std::uint32_t const> offsets_at(Rank home) const {
    return offsets.slice(homes[number(home)], rows_at(home) + 1);
  }
  MatrixView<std::int64_t> sums_at(Rank home) const { return sums.view().slice(homes[number(home)], rows_at(home)); }
};

}  // namespace gpups::cache

namespace gpups {

// The distinct keys and entries of a batch. They do not change after the batch was prepared.
struct BatchPattern::Impl {
  std::shared_ptr<void const> store;  // Store::Impl::identity_ of the store that prepared it
  std::size_t samples = 0;
  std::vector<cache::PatternPart> parts;
  Array<Key> keys;             // of all parts; PatternPart has views of this and the next array
  Array<std::uint32_t> words;  // positions, offsets and order
};

// A pattern with its clock, and the state of its rows and gradients.
struct GPUPS_HIDDEN PreparedBatch::Impl {
  Impl(std::shared_ptr<BatchPattern::Impl const> of, Clock at)
      : pattern(std::move(of)),
        clock(at),
        samples(pattern->samples),
        parts(pattern->parts.begin(), pattern->parts.end()) {}

  std::shared_ptr<BatchPattern::Impl const> pattern;
  Clock clock;
  std::size_t samples;
  std::vector<cache::PreparedPart> parts;
  std::atomic<bool> ready = false;  // all rows can be read after `ready_event`
  Event ready_event;
  std::vector<Event> read_events;  // ends of all reads of rows; rows may change after these

  // Set by push().
  bool pushed = false;
  Array<std::uint32_t> bad_rows;  // (parts): the first row whose gradient is not finite, or kNoRow
  // (parts): the first entry whose source index is invalid, or kNoRow. Empty on the host, and without source indices.
  Array<std::uint32_t> wrong_numbers;
  Event push_event;
};

}  // namespace gpups

namespace gpups::cache {

// Makes the pattern of a batch that uses `tables`, with `samples` samples, for a store of `ranks` ranks and
// `table_count` tables. Depends only on its arguments. Waits for `stream`. Throws Error for unknown tables, invalid bag
// offsets, too many entries, and arrays on another device.
std::shared_ptr<BatchPattern::Impl> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                      std::size_t samples, int ranks, std::size_t table_count);

// Throw Error for an empty batch, and for a part number that is not below `parts`. call: the public function, for the
// message.
void require_batch(PreparedBatch const& batch, char const* call);
void require_part(std::size_t part, std::size_t parts, char const* call);

}  // namespace gpups::cache
