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

  // Set in progress(). This rank's rows get their numbers when the routes of the batch are known, replicas before their
  // values arrive.
  Array<std::uint32_t> ids;  // (rows): their numbers in this rank's shard
  // The positions in this batch of rows that other ranks own. List q has the rows that rank q owns: lists[q] ..
  // lists[q + 1] - 1. Until the routes are known, it has the rows whose home is rank q, in the order of the intent.
  Array<std::uint32_t> remote_positions;
  std::vector<std::uint32_t> lists;  // (ranks + 1)
  // The positions of the rows that this rank owns, if they are not the rows of its home.
  std::optional<Array<std::uint32_t>> local_positions;
  // If rows are away from their homes: list q has list_rows[q * ranks + h] rows with home h, in ascending order of h.
  std::vector<std::uint32_t> list_rows;
  Array<std::uint32_t> replicas;  // ids[remote_positions[i]], while the step needs them

  // Set by push().
  Matrix<std::int64_t> sums;  // (rows, dim)
  bool applied = false;       // push() has updated the rows directly, without sums

  // Frees what only the batch's step needs.
  void end_step() {
    replicas = {};
    sums = {};
  }

  // The rows of a home.
  std::size_t rows_at(Rank home) const { return homes[number(home) + 1] - homes[number(home)]; }
  View<Key const> keys_at(Rank home) const { return keys.slice(homes[number(home)], rows_at(home)); }
  View<std::uint32_t> ids_at(Rank home) const { return ids.view().slice(homes[number(home)], rows_at(home)); }
  View<std::uint32_t const> offsets_at(Rank home) const {
    return offsets.slice(homes[number(home)], rows_at(home) + 1);
  }
  MatrixView<std::int64_t> sums_at(Rank home) const { return sums.view().slice(homes[number(home)], rows_at(home)); }

  // The list of another rank.
  std::size_t list_size(Rank rank) const { return lists[number(rank) + 1] - lists[number(rank)]; }
  View<std::uint32_t const> list_positions(Rank rank) const {
    return remote_positions.view().slice(lists[number(rank)], list_size(rank));
  }
  // Returns the rows of a rank's list whose home is `home`, or the whole list. REQUIRES: the routes are known.
  struct ListSlice {
    std::size_t first = 0, size = 0;
  };
  ListSlice list_slice(Rank rank, std::optional<Rank> home) const {
    ListSlice slice{lists[number(rank)], list_size(rank)};
    if (!home) return slice;
    if (list_rows.empty()) return {slice.first, *home == rank ? slice.size : 0};
    std::size_t const row = number(rank) * (lists.size() - 1);
    for (std::uint32_t h = 0; h < number(*home); ++h) slice.first += list_rows[row + h];
    slice.size = list_rows[row + number(*home)];
    return slice;
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
