// SPDX-License-Identifier: Apache-2.0
// Where the rows of one home are. The home of a key is a hash of the key and never changes; the owner of a row is its
// home, unless the row was moved to another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"
#include "kernels/key_index.hpp"

namespace gpups::cache {

// The rows of one table that are away from this home. Takes about 40 bytes of host memory for each. For the thread that
// makes progress.
class Directory {
 public:
  Directory() : host_(Device::host(), 1), index_(Device::host(), 0, kernels::Growth::kByMoving) {}

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

  // Returns the number of rows that are away.
  std::size_t size() const { return index_.size(); }
  bool empty() const { return size() == 0; }

  // Returns the owner of each key, on the host: `home` for rows that are not away.
  std::vector<Rank> owners(View<Key const> keys, Rank home) const;
  // Returns what is known about a row; nullopt if it is not away.
  std::optional<Entry> find(Key key) const;
  // Sets where rows are. keys: (n), distinct, on the host. owners: (n); rows whose owner is `home` are not away.
  void set(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since, PlacementReason reason);
  // Returns all rows that are away, in the order of their keys.
  std::vector<KeyedEntry> list() const;

 private:
  mutable Stream host_;
  kernels::KeyIndex index_;
  std::vector<Entry> entries_;  // by the key's number in the index
};

// Returns whether this rank owns the row of a key.
using OwnsRow = std::function<bool(TableId table, Key key)>;

// The directories of all tables, by TableId, on one rank.
struct Directories {
  std::vector<Directory> directories;
  bool any_moved = false;  // on any rank: then batches must be announced one step earlier, so that homes can route them
};

}  // namespace gpups::cache
