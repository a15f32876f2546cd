// SPDX-License-Identifier: Apache-2.0
// Which rank should own a row in a step: a pure function, in integers, of the uses that ranks have announced
// (docs/decisions/012-rows-that-move.md). Hosts, GPUs and the replay without ranks choose the same owners.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// Policies see the uses of this number of steps, the one that is decided included: later ones hardly matter.
inline constexpr std::int64_t kPolicyWindow = 16;

// A rank whose batches use a row.
struct RowUser {
  Rank rank{};
  std::uint32_t steps = 0;  // bit i: it uses the row i steps after the step that is decided

  bool operator==(RowUser const&) const = default;
  constexpr bool uses_now() const { return (steps & 1) != 0; }
};

// The bytes that ranks send for a row of a table.
struct RowBytes {
  std::int64_t read = 0;    // its value, to a rank that uses it in a step
  std::int64_t update = 0;  // a gradient, to its owner
  std::int64_t move = 0;    // the row with its optimizer state, to a new owner
  // While another rank than its home owns the row:
  std::int64_t forward = 0;  // a key from the home to the owner, for each use by another rank
  std::int64_t route = 0;    // the owner from the home to each other rank that uses it

  // Returns the bytes of a move, for which the owner before gets the key, and the new one the route.
  constexpr std::int64_t with_keys() const { return move + forward + route; }
};

// The hosts of ranks, if there are several.
struct HostsOfRanks {
  std::uint32_t const* host = nullptr;  // (ranks), on the device: ranks of a host have equal numbers; null: one host
  std::int64_t between = 1;             // what a byte between hosts costs, if one within a host costs 1
};

// The rows of a table: `size` elements of columns of rows, from `first` on. They follow `policy`.
struct RowsOfTable {
  std::size_t first = 0, size = 0;
  RowBytes bytes{};
  PlacementPolicy policy{};
};

// Chooses the owner of each row from the step on: the owner before, or a rank that uses the row in the step. The
// columns have elements for other rows, too.
struct ChooseOwners {
  Clock step{};
  std::uint32_t ranks = 0;  // the home of a row is home_of() its key
  std::span<RowsOfTable const> tables;
  View<Key const> keys;
  View<std::uint32_t const> owners;  // ranks, before the step
  // Row i has the users first_user[i] .. first_user[i] + user_count[i] - 1. Not read for tables that are static.
  View<std::uint32_t const> first_user;
  View<std::uint32_t const> user_count;
  View<RowUser const> users;  // of a row: distinct; those of a host one after another
  View<std::int64_t> sent;    // (users): scratch
  HostsOfRanks hosts{};
  View<std::uint32_t> chosen;  // ranks
};
// Queued on `stream`.
void choose_owners(Stream& stream, ChooseOwners const& arguments);

}  // namespace gpups::kernels
