// SPDX-License-Identifier: Apache-2.0
// Which rank should own a row in a step. A pure function of what the home of the row knows, so that it also runs
// without ranks (docs/decisions/012-rows-that-move.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/placement.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A batch that uses a row.
struct RowUse {
  Clock step{};
  Rank reader{};
};

// The bytes that ranks send for a row of a table.
struct RowBytes {
  double read = 0;    // its value, to a rank that uses it in a step
  double update = 0;  // a gradient, to its owner
  double move = 0;    // the row with its optimizer state, to a new owner
};

// Some rows of a table that batches use in a step.
struct UsedRows {
  Clock step{};
  RowBytes bytes;
  std::span<Key const> keys;                 // (n)
  std::span<Rank const> owners;              // (n): before the step
  std::span<std::uint32_t const> first_use;  // (n + 1): row i has the uses first_use[i] .. first_use[i + 1] - 1
  std::span<RowUse const> uses;              // in this step and in later ones, as far as they are announced
};

// Returns the owner of each row from the step on: the owner before, or a rank that uses the row in the step.
std::vector<Rank> choose_owners(PlacementPolicy policy, UsedRows const& rows);

}  // namespace gpups::cache
