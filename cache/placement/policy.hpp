// SPDX-License-Identifier: Apache-2.0
// Which rank should own a row in a step. A pure function of what the home of the row knows, so that it also runs
// without ranks (docs/decisions/012-rows-that-move.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/placement.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Policies see the uses of this number of steps, the one that is decided included: later ones hardly matter.
constexpr std::int64_t kPolicyWindow = 16;

// A rank whose batches use a row.
struct RowUser {
  Rank rank{};
  std::uint16_t steps = 0;  // bit i: it uses the row i steps after the step that is decided

  bool operator==(RowUser const&) const = default;
  bool uses_now() const { return (steps & 1) != 0; }
};

// The bytes that ranks send for a row of a table.
struct RowBytes {
  std::int64_t read = 0;    // its value, to a rank that uses it in a step
  std::int64_t update = 0;  // a gradient, to its owner
  std::int64_t move = 0;    // the row with its optimizer state, to a new owner
};

// Returns the bytes for rows of a table, without the headers of messages.
RowBytes row_bytes(TableOptions const& table);

// Some rows of a table that batches use in a step.
struct UsedRows {
  Clock step{};
  RowBytes bytes;
  std::span<Key const> keys;                  // (n)
  std::span<Rank const> owners;               // (n): before the step
  std::span<std::uint32_t const> first_user;  // (n + 1): row i has the users first_user[i] .. first_user[i + 1] - 1
  std::span<RowUser const> users;             // of a row: distinct, in any order
};

// Returns the owner of each row from the step on: the owner before, or a rank that uses the row in the step.
std::vector<Rank> choose_owners(PlacementPolicy policy, UsedRows const& rows);

}  // namespace gpups::cache
