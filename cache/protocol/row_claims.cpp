// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/row_claims.hpp"

#include <algorithm>

#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

void RowClaims::add(Rank claimant, TableId table, std::vector<Key> const& keys) {
  auto& moves = moves_[table];
  moves.reserve(moves.size() + keys.size());
  for (Key const key : keys) {
    auto const [place, added] = moves.try_emplace(key, Move{.to = claimant});
    if (!added) place->second.to = std::min(place->second.to, claimant);
  }
}

void RowClaims::decide(OwnerDirectories& placement, Rank me, Clock since) {
  decided_ = true;
  for (auto& [table, moves] : moves_) {
    auto& directory = placement.directories[number(table)];
    std::vector<Key> keys;
    std::vector<Rank> to;
    for (auto const& [key, move] : moves) keys.push_back(key);
    auto const from = directory.owners(View<Key const>(keys), me, since);
    std::size_t i = 0;  // in the order of `keys`: both loops have that of the map
    std::vector<Key> moved;
    for (auto& [key, move] : moves) {
      move.from = from[i++];
      if (move.from == move.to) continue;
      moved.push_back(key);
      to.push_back(move.to);
    }
    directory.set(View<Key const>(moved), to, me, since, PlacementReason::kLocalized);
  }
}

std::vector<std::uint32_t> RowClaims::grant(Rank claimant, TableId table, std::vector<Key> const& keys,
                                            OwnerDirectories& placement, Rank me, Clock since) {
  if (!decided_) decide(placement, me, since);
  std::vector<std::uint32_t> from;
  auto const& moves = moves_[table];
  for (Key const key : keys) {
    auto const move = moves.find(key);
    bool const granted = move != moves.end() && move->second.to == claimant && move->second.from != claimant;
    from.push_back(granted ? number(move->second.from) : kernels::kNoRow);
  }
  return from;
}

void RowClaims::clear() {
  moves_.clear();
  decided_ = false;
}

}  // namespace gpups::cache
