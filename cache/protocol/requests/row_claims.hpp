// SPDX-License-Identifier: Apache-2.0
// The claims of Store::localize() at a home: which ranks want to own which of its rows, and who gets them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "cache/placement/owner_directory.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

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
  std::vector<std::uint32_t> wait_grant(Rank claimant, TableId table, std::vector<Key> const& keys, Stream& stream,
                                        OwnerDirectories& placement, Clock since);
  // Drops all claims, before or after a call.
  void clear();

 private:
  void wait_decide(Stream& stream, OwnerDirectories& placement, Clock since);

  // Who gets a claimed row, and from whom.
  struct Move {
    Rank to{}, from{};
  };
  std::map<TableId, std::unordered_map<Key, Move>> moves_;
  bool decided_ = false;
};

inline void RowClaims::add(Rank claimant, TableId table, std::vector<Key> const& keys) {
  auto& moves = moves_[table];
  moves.reserve(moves.size() + keys.size());
  for (Key const key : keys) {
    auto const [place, added] = moves.try_emplace(key, Move{.to = claimant});
    if (!added) place->second.to = std::min(place->second.to, claimant);
  }
}

inline void RowClaims::wait_decide(Stream& stream, OwnerDirectories& placement, Clock since) {
  decided_ = true;
  for (auto& [table, moves] : moves_) {
    auto& directory = placement.at(table);
    std::vector<Key> keys;
    std::vector<OwnerDirectory::Entry> to;
    for (auto const& [key, move] : moves) keys.push_back(key);
    auto const from = directory.wait_owners(stream, View<Key const>(keys), since);
    std::size_t i = 0;  // in the order of `keys`: both loops have that of the map
    std::vector<Key> moved;
    for (auto& [key, move] : moves) {
      move.from = from[i++];
      if (move.from == move.to) continue;
      moved.push_back(key);
      to.push_back({move.to, PlacementReason::kLocalized, since});
    }
    directory.wait_set(stream, View<Key const>(moved), to, since);
  }
}

inline std::vector<std::uint32_t> RowClaims::wait_grant(Rank claimant, TableId table, std::vector<Key> const& keys,
                                                        Stream& stream, OwnerDirectories& placement, Clock since) {
  if (!decided_) wait_decide(stream, placement, since);
  std::vector<std::uint32_t> from;
  auto const& moves = moves_[table];
  for (Key const key : keys) {
    auto const move = moves.find(key);
    bool const granted = move != moves.end() && move->second.to == claimant && move->second.from != claimant;
    from.push_back(granted ? number(move->second.from) : kernels::kNoRow);
  }
  return from;
}

inline void RowClaims::clear() {
  moves_.clear();
  decided_ = false;
}

}  // namespace gpups::cache
