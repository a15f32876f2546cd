// SPDX-License-Identifier: Apache-2.0
// The data of BatchPattern and PreparedBatch. A pattern has the distinct keys of each part, grouped by owner, and its
// entries as a sparse matrix; batches of several steps may share it. A prepared batch adds the numbers of its rows in
// this rank's shards, and the sums of push().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpups/store.hpp"

namespace gpups::cache {

// One part of a pattern. Views refer to arrays of BatchPattern::Impl.
struct PatternPart {
  TableId table{};
  std::size_t entries = 0;
  std::size_t rows = 0;
  std::vector<std::uint32_t> owners;  // (ranks + 1): keys of owner q are owners[q] .. owners[q+1]
  View<Key> keys;                     // (rows)
  View<std::uint32_t> positions;      // (entries): the row of each entry
  View<std::uint32_t> offsets;        // (rows + 1): entries of row r are order[offsets[r]] .. order[offsets[r + 1] - 1]
  View<std::uint32_t> order;          // (entries): entries sorted by row
  Array<std::uint32_t> bags;          // (bags + 1): bag offsets; empty for parts that are not pooled
  Array<std::uint32_t> bag_of;        // (entries): the bag of each entry; empty for parts that are not pooled
};

// One part of a prepared batch.
struct PreparedPart {
  // `pattern` must outlive this object.
  explicit PreparedPart(PatternPart const& pattern)
      : table(pattern.table),
        entries(pattern.entries),
        rows(pattern.rows),
        owners(pattern.owners),
        keys(pattern.keys),
        positions(pattern.positions),
        offsets(pattern.offsets),
        order(pattern.order),
        bags(pattern.bags),
        bag_of(pattern.bag_of) {}

  // From the pattern.
  TableId table;
  std::size_t entries, rows;
  std::span<std::uint32_t const> owners;
  View<Key const> keys;
  View<std::uint32_t const> positions, offsets, order, bags, bag_of;

  // Set in progress(): those of owned rows when the batch is announced, those of replicas before their values arrive.
  Array<std::uint32_t> ids;  // (rows): their numbers in this rank's shard
  // Rows of other ranks, grouped by owner as in `keys`; the rows of an owner are in the order of its intent.
  Array<std::uint32_t> remote_positions;  // (rows of other ranks): their positions in this batch
  Array<std::uint32_t> replicas;          // (rows of other ranks): ids[remote_positions[i]], while the step needs them

  // Set by push().
  Matrix<std::int64_t> sums;  // (rows, dim)
  bool applied = false;       // push() has updated the rows directly, without sums

  // Frees what only the batch's step needs.
  void end_step() {
    replicas = {};
    sums = {};
  }

  std::size_t owned_by(Rank owner) const { return owners[number(owner) + 1] - owners[number(owner)]; }
  View<Key const> keys_of(Rank owner) const { return keys.slice(owners[number(owner)], owned_by(owner)); }
  // REQUIRES: owner != me, here and below.
  View<std::uint32_t const> remote_positions_of(Rank owner, Rank me) const {
    return remote_positions.view().slice(first_of(owner, me), owned_by(owner));
  }
  View<std::uint32_t const> replicas_of(Rank owner, Rank me) const {
    return replicas.view().slice(first_of(owner, me), owned_by(owner));
  }
  View<std::uint32_t> ids_of(Rank owner) const { return ids.view().slice(owners[number(owner)], owned_by(owner)); }
  View<std::uint32_t const> offsets_of(Rank owner) const {  // (owned_by(owner) + 1)
    return offsets.slice(owners[number(owner)], owned_by(owner) + 1);
  }
  MatrixView<std::int64_t> sums_of(Rank owner) const {
    return sums.view().slice(owners[number(owner)], owned_by(owner));
  }
  // Returns the position of the first row of `owner` among the rows of other ranks.
  std::size_t first_of(Rank owner, Rank me) const {
    return owners[number(owner)] - (number(owner) > number(me) ? owned_by(me) : 0);
  }
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
struct PreparedBatch::Impl {
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
