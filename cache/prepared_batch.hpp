// SPDX-License-Identifier: Apache-2.0
// What is inside a prepared batch: for each part the distinct keys, grouped by owner, and the entries as a sparse
// matrix, which batches of several steps may share; then what the round brings (row numbers, values of rows owned
// elsewhere) and what push leaves (sums).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpups/store.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::cache {

struct PatternPart {
  TableId table{};
  std::size_t entries = 0;
  std::size_t rows = 0;
  std::vector<std::uint32_t> owners;  // (ranks + 1): keys of owner q are owners[q] .. owners[q+1]
  View<Key> keys;                     // (rows)
  View<std::uint32_t> positions;      // (entries) row of an entry
  View<std::uint32_t> offsets;        // (rows + 1) into `order`
  View<std::uint32_t> order;          // (entries) entries by row
  Array<std::uint32_t> bags;          // (bags + 1), for pooled parts only, and
  Array<std::uint32_t> bag_of;        // (entries), likewise
};

struct PreparedPart {
  // `pattern` must stay.
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

  // Of the pattern.
  TableId table;
  std::size_t entries, rows;
  std::span<std::uint32_t const> owners;
  View<Key const> keys;
  View<std::uint32_t const> positions, offsets, order, bags, bag_of;

  // Made when the batch is announced, by the thread that turns the round.
  Array<std::uint32_t> ids;  // row numbers in this rank's shard of the keys that it owns
  // Rows owned elsewhere, by owner as `keys`, but each owner's in the order that it knows, see Intent.
  Array<std::uint32_t> remote_positions;  // (rows owned elsewhere), their numbers in this batch
  kernels::NumberMatrix values;  // (rows owned elsewhere, dim), filled by their owners, with numbers as they are kept

  Matrix<float> pulled;  // (rows, dim), made by pull_pooled

  // Made by push.
  Matrix<std::int64_t> sums;  // (rows, dim)
  bool applied = false;       // push has updated the rows at once, without sums; then its fault is of the update

  std::size_t owned_by(Rank owner) const { return owners[number(owner) + 1] - owners[number(owner)]; }
  View<Key const> keys_of(Rank owner) const { return keys.slice(owners[number(owner)], owned_by(owner)); }
  // REQUIRES: owner != me.
  View<std::uint32_t const> remote_positions_of(Rank owner, Rank me) const {
    return remote_positions.view().slice(first_of(owner, me), owned_by(owner));
  }
  View<std::uint32_t const> offsets_of(Rank owner) const {  // (owned_by(owner) + 1)
    return offsets.slice(owners[number(owner)], owned_by(owner) + 1);
  }
  MatrixView<std::int64_t> sums_of(Rank owner) const {
    return sums.view().slice(owners[number(owner)], owned_by(owner));
  }
  // The rows of `values` that come from `owner`, on rank `me`. REQUIRES: owner != me.
  kernels::NumberView values_of(Rank owner, Rank me) const {
    return values.view().slice(first_of(owner, me), owned_by(owner));
  }
  // Where the rows of `owner` begin among those owned elsewhere.
  std::size_t first_of(Rank owner, Rank me) const {
    return owners[number(owner)] - (number(owner) > number(me) ? owned_by(me) : 0);
  }
};

}  // namespace gpups::cache

namespace gpups {

struct BatchPattern::Impl {
  std::shared_ptr<void const> store;  // the one that prepared it: Store::Impl::identity_
  std::size_t samples = 0;
  std::vector<cache::PatternPart> parts;
  Array<Key> keys;             // of all parts, which refer to these two
  Array<std::uint32_t> words;  // positions, offsets and order
};

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
  std::atomic<bool> ready = false;  // every row can be read, after `ready_event`
  Event ready_event;
  std::vector<Event> read_events;  // after reading rows: they may change, and arrays go, after these
  Event pulled_event;              // PreparedPart::pulled is there

  // Made by push.
  bool pushed = false;
  Array<std::uint32_t> bad_rows;  // (parts) the first row of each whose gradient is not finite, or kNoRow
  // Where source indices were given, on a GPU: (parts) the first entry of each whose number is no source's, or kNoRow.
  Array<std::uint32_t> wrong_numbers;
  Event push_event;
};

}  // namespace gpups
