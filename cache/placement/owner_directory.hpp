// SPDX-License-Identifier: Apache-2.0
// Where the rows of one home are. The home of a key is a hash of the key and never changes; the owner of a row is its
// home, unless the row was moved to another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cache/placement/announced_uses.hpp"
#include "gpups/array.hpp"
#include "gpups/placement.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/placement/owner_entries.hpp"

namespace gpups::cache {

// The rows of one table that are away from this home, in columns on the device of the store. For the thread that makes
// progress. Functions with `wait` in their names block until the stream is done, unless no row is away.
class OwnerDirectory {
 public:
  OwnerDirectory(Device device, Rank home) : device_(device), home_(home) {}

  // What the home knows about a row.
  struct Entry {
    Rank owner{};
    PlacementReason reason{};
    Clock since{};
  };
  struct KeyedEntry {
    Key key{};
    Entry entry;
  };

  // Returns the bytes on the device for `rows` rows that are away.
  static std::size_t bytes_for(std::size_t rows);
  // Return what is known about rows in a step, or their owners. keys: on the host. step: at least the step before the
  // one that was planned last.
  std::vector<Entry> wait_entries(Stream& stream, View<Key const> keys, Clock step) const;
  std::vector<Rank> wait_owners(Stream& stream, View<Key const> keys, Clock step) const;
  // Returns all rows that are away in a step, in the order of their keys.
  std::vector<KeyedEntry> wait_list(Stream& stream, Clock step) const;
  // Sets where rows are now and in later steps. keys: (n), distinct, on the host. now: the present step. REQUIRES: no
  // row moves in a later step.
  void wait_set(Stream& stream, View<Key const> keys, std::span<Entry const> entries, Clock now);
  // The same for rows that are at home again.
  void wait_return(Stream& stream, View<Key const> keys, Clock now);

 private:
  friend class OwnerDirectories;
  std::size_t entries() const { return index_.size(); }  // of rows that are away or were
  std::vector<Entry> wait_read(Stream& stream, View<std::uint32_t const> ids, Clock step) const;
  void reserve(Stream& stream);
  void wait_drop_returned(Stream& stream, Clock step);

  Device device_;
  Rank home_;
  kernels::KeyIndex index_;                     // without memory until a row is away
  kernels::RowStorage<std::uint32_t> entries_;  // by the key's number in the index; see owner_entries.hpp
  std::size_t returned_ = 0;                    // keys in the index whose rows are at home again
};

// Returns whether this rank owns the row of a key.
using OwnsRow = std::function<bool(TableId table, Key key)>;

// The owners of the rows that batches use in a step. Columns on the device, as those of UsedRows.
struct PlannedOwners {
  Array<std::uint32_t> ids;              // in the directories, or kNoRow
  Array<std::uint32_t> before, in_step;  // ranks
  Array<std::uint32_t> moved, moved_ids;
  Array<Key> moved_keys;
  Array<std::uint32_t> counts;  // (3, tables): see kernels::ListMoved
};

// What one rank knows as the home of rows.
class OwnerDirectories {
 public:
  // Rows move, or have moved, on any rank: then batches must be announced one step earlier, so that homes can plan
  // them.
  bool any_moved = false;

  // Call it once, before the other functions.
  void start(Device device, Rank home, int ranks, std::size_t tables);
  OwnerDirectory& at(TableId table) { return directories_[number(table)]; }
  OwnerDirectory const& at(TableId table) const { return directories_[number(table)]; }
  std::size_t tables() const { return directories_.size(); }

  // Writes the owners of rows of this home in a step, which is at least the one before the step that was planned last.
  // Queued on the stream.
  struct OwnersOfRows {
    TableId table{};
    View<Key const> keys;        // (n)
    View<std::uint32_t> owners;  // (n), ranks
  };
  void find_owners(Stream& stream, std::span<OwnersOfRows const> lists, Clock step) const;
  // Finds the owners before a step, and lets each table's policy choose those in it. tables: with the policies and the
  // bytes of rows. Queued on the stream.
  PlannedOwners choose(Stream& stream, UsedRows const& used, std::span<kernels::RowsOfTable const> tables,
                       kernels::HostsOfRanks const& hosts, Clock step) const;
  // Writes where rows are from a step on; before, they are where they were. counts: those of `planned`, on the host.
  // Call it once for each step, in order. Waits if a directory grows, or forgets rows that have returned.
  void wait_plan(Stream& stream, UsedRows const& used, PlannedOwners const& planned,
                 std::span<std::uint32_t const> counts, Clock step);

 private:
  std::uint32_t ranks_ = 0;
  std::vector<OwnerDirectory> directories_;  // by TableId
};

}  // namespace gpups::cache
