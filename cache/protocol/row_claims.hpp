// SPDX-License-Identifier: Apache-2.0
// The claims of Store::localize() at a home: which ranks want to own which of its rows, and who gets them.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "cache/placement/owner_directory.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Collects the claims of one call. If several ranks claim a row, the lowest rank gets it. For the thread that makes
// progress.
class RowClaims {
 public:
  // Adds a claim of a rank. keys: distinct.
  void add(Rank claimant, TableId table, std::vector<Key> const& keys);
  // Returns, for each key that the rank has claimed, the rank that owns the row, or kNoRow if the claimant does not
  // get it or owns it already. The first call moves all claimed rows in the directories. REQUIRES: all ranks have
  // claimed.
  std::vector<std::uint32_t> grant(Rank claimant, TableId table, std::vector<Key> const& keys,
                                   OwnerDirectories& placement, Rank me, Clock since);
  // Drops all claims, before or after a call.
  void clear();

 private:
  void decide(OwnerDirectories& placement, Rank me, Clock since);

  // Who gets a claimed row, and from whom.
  struct Move {
    Rank to{}, from{};
  };
  std::map<TableId, std::unordered_map<Key, Move>> moves_;
  bool decided_ = false;
};

}  // namespace gpups::cache
