// SPDX-License-Identifier: Apache-2.0
// Where the rows of one home are. The home of a key is a hash of the key and never changes; the owner of a row is its
// home, unless the row was moved to another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"
#include "kernels/index/key_index.hpp"

namespace gpups::cache {

// The owners of some rows before a step and in it.
struct RowOwners {
  std::vector<Rank> before, in_step;
};

// The rows of one table that are away from this home. Takes about 50 bytes of host memory for each. For the thread that
// makes progress.
class OwnerDirectory {
 public:
  OwnerDirectory() : host_(Device::host(), 1), index_(Device::host(), 0, kernels::Growth::kByMoving) {}

  // What the home knows about a row that is away.
  struct Entry {
    Rank owner{};
    PlacementReason reason{};
    Clock since{};
  };
  struct KeyedEntry {
    Key key{};
    Entry entry;
  };

  // Returns the bytes for `rows` rows that are away.
  static std::size_t bytes_for(std::size_t rows) {
    return kernels::KeyIndex::bytes_for(rows, kernels::Growth::kByMoving) + rows * sizeof(StoredEntry);
  }
  // Returns the number of rows that are away, those included that move in the planned step.
  std::size_t size() const { return index_.size(); }

  // Returns the owner of each key in a step, on the host: `home` for rows that are not away. step: at least the step
  // before the one that was planned last.
  std::vector<Rank> owners(View<Key const> keys, Rank home, Clock step) const;
  // Returns the owners before a step and in it.
  RowOwners owners_around(View<Key const> keys, Rank home, Clock step) const;
  // Returns what is known about a row in a step; nullopt if it is not away.
  std::optional<Entry> find(Key key, Clock step) const;
  // Returns all rows that are away in a step, in the order of their keys.
  std::vector<KeyedEntry> list(Clock step) const;

  // Sets where rows are now and in later steps. keys: (n), distinct, on the host. owners: (n); rows whose owner is
  // `home` are not away. REQUIRES: no row moves in a later step.
  void set(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since, PlacementReason reason);
  // Sets where rows are from step `since` on, which may be the next one but one; before, they are where they were.
  void plan(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since, PlacementReason reason);

 private:
  struct StoredEntry {
    Entry entry;
    Rank before{};  // the owner before the planned step, if the row moves in it
  };
  bool moves_after(Clock step, StoredEntry const& stored) const {
    return step < planned_ && stored.entry.since == planned_;
  }
  std::vector<std::uint32_t> find(View<Key const> keys) const;
  std::vector<Rank> owners(std::span<std::uint32_t const> ids, Rank home, Clock step) const;
  std::vector<std::uint32_t> insert(View<Key const> keys);
  void erase_returned();

  mutable Stream host_;
  kernels::KeyIndex index_;
  std::vector<StoredEntry> entries_;  // by the key's number in the index
  // Of the keys that move in step planned_: what was known before; nullopt: they were not away. Those that return to
  // their home in that step stay in the index until then.
  std::vector<std::pair<Key, std::optional<Entry>>> before_;
  std::vector<Key> returned_;
  Clock planned_{};
};

// Returns whether this rank owns the row of a key.
using OwnsRow = std::function<bool(TableId table, Key key)>;

// What one rank knows as the home of rows.
struct OwnerDirectories {
  std::vector<OwnerDirectory> directories;  // by TableId
  // Rows move, or have moved, on any rank: then batches must be announced one step earlier, so that homes can plan
  // them.
  bool any_moved = false;
};

}  // namespace gpups::cache
