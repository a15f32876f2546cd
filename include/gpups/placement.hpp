// SPDX-License-Identifier: Apache-2.0
// Where rows are.
//
//   RowPlacement const row = store.where(table, Key{7});
//   std::printf("rank %u owns key 7 since step %lld\n", number(row.owner), (long long)number(row.since));
#pragma once

#include <cstdint>

#include "gpups/types.hpp"

namespace gpups {

// Why a row is where it is.
enum class PlacementReason : std::uint8_t {
  kHome,       // it never moved, or moved back to its home
  kLocalized,  // Store::localize()
};

// Where a row is; see Store::where().
struct RowPlacement {
  Rank owner{};   // the rank that has the row's true value and its optimizer state, and updates it
  Rank home{};    // the rank that knows the owner: a hash of the key, which never changes
  Clock since{};  // the first step in which the owner has the row; 0 for a row that never moved
  PlacementReason reason{};
};

}  // namespace gpups
