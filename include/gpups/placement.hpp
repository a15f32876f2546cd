// SPDX-License-Identifier: Apache-2.0
// Where rows are.
//
//   RowPlacement const row = store.where(table, Key{7});
//   std::printf("rank %u owns key 7 since step %lld\n", number(row.owner), (long long)number(row.since));
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpups/compiler.hpp"
#include "gpups/types.hpp"

namespace gpups {

// Why a row is where it is.
enum class PlacementReason : std::uint8_t {
  kHome,       // it is at its home: it never moved, or moved back
  kLocalized,  // Store::localize()
  kPolicy,     // the placement policy moved it while training
};

// When rows move while training, to the ranks that use them. Results do not depend on it, but for lossy compression.
enum class PlacementPolicy : std::uint8_t {
  kStatic,    // never
  kRelocate,  // to a rank that uses the row in the next step, if the owner does not
  kAdaptive,  // if that sends fewer bytes, considering the announced uses of the next StoreOptions::placement_window
              // steps
  kRandom,    // at random, to any rank that uses the row: for tests
  kAuto,      // kAdaptive if ranks are on several hosts, kStatic if all of them share one
};

inline constexpr PlacementPolicy kPlacementPolicies[] = {PlacementPolicy::kStatic, PlacementPolicy::kRelocate,
                                                         PlacementPolicy::kAdaptive, PlacementPolicy::kRandom,
                                                         PlacementPolicy::kAuto};

// Returns the name of a policy, as in a configuration: "adaptive".
GPUPS_EXPORT char const* name_of(PlacementPolicy policy);
// Returns the name of a reason: "home", "localized" or "policy".
GPUPS_EXPORT char const* name_of(PlacementReason reason);
// Returns the policy with this name. Throws Error if there is none.
GPUPS_EXPORT PlacementPolicy placement_policy(std::string_view name);

// Where a row is; see Store::where().
struct RowPlacement {
  Rank owner{};   // the rank that has the row's true value and its optimizer state, and updates it
  Rank home{};    // the rank that knows the owner: a hash of the key, which never changes
  Clock since{};  // the first step in which the owner has the row; 0 if the row is at its home
  PlacementReason reason{};
};

// A row that batches use often; see Store::hottest_rows().
struct HotRow {
  TableId table{};
  Key key{};
  RowPlacement placement{};
  std::vector<std::uint32_t> uses;  // (ranks): steps for which each rank has announced that it uses the row

  std::uint64_t all_uses() const {
    std::uint64_t sum = 0;
    for (std::uint32_t const of_rank : uses) sum += of_rank;
    return sum;
  }
};

}  // namespace gpups
