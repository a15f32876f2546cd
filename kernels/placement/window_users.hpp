// SPDX-License-Identifier: Apache-2.0
// The users of the rows that are used in the steps that a policy sees (the window): a column into which the uses of
// each batch are merged once, when the window reaches its step. Columns of all tables; no function waits, and the
// numbers of launches do not depend on the numbers of tables, ranks and uses.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/choose_owners.hpp"
#include "kernels/placement/used_rows.hpp"

namespace gpups::kernels {

// A rank that uses a row in steps of a window. step_ring: step s has bit s % 32. Bits of steps that have passed are
// dropped by the next merge: until then, the window may have begun kPolicyWindow - 1 steps earlier.
struct WindowUser {
  Rank rank{};
  std::uint32_t step_ring = 0;
};
static_assert(2 * kPolicyWindow <= 32);

// Returns the bit of a step.
constexpr std::uint32_t step_ring_bit(Clock step) {
  return std::uint32_t{1} << (static_cast<std::uint64_t>(number(step)) % 32);
}
// Returns the bits of the steps from `first` to the one before `end`.
constexpr std::uint32_t step_ring_bits(Clock first, Clock end) {
  std::uint32_t bits = 0;
  for (Clock step = first; step < end; step = step + 1) bits |= step_ring_bit(step);
  return bits;
}

// The users of rows, in the ascending order of table, key and rank. Those of table t are counts[t] elements, from one
// on that the functions get in other arguments.
struct WindowUsers {
  View<Key const> keys;
  View<WindowUser const> users;
  View<std::uint32_t const> counts;  // (tables)
};

// The users and uses that one thread merges.
inline constexpr std::uint32_t kMergedOnHost = 65536, kMergedOnDevice = 32;
// Returns the number of blocks in which so many users and uses of a table are merged.
inline std::uint32_t merged_blocks(Device device, std::uint32_t count) {
  std::uint32_t const size = device.is_host() ? kMergedOnHost : kMergedOnDevice;
  return (count + size - 1) / size;
}

// Merges the uses of a step into a window, in two passes: each block counts its users, and then writes them after those
// of the blocks before it. A use may be there several times.
struct MergeUses {
  struct MergedTable {
    std::uint32_t first_user = 0, users_max = 0;  // of the window
    std::uint32_t first_use = 0, uses = 0;        // of the run
    std::uint32_t to = 0;                         // of the merged users, the first of this table
    std::uint32_t first_block = 0, blocks = 0;    // merged_blocks(users_max + uses)
  };
  std::span<MergedTable const> tables;
  WindowUsers before;
  std::uint32_t kept = 0;  // bits of the steps that stay; users without any are dropped
  UseRun run;
  std::uint32_t bit = 0;  // of the run's step
};
struct CountMergedUses : MergeUses {
  View<std::uint32_t> counts;  // (blocks)
};
struct WriteMergedUses : MergeUses {
  View<std::uint32_t const> block_at;  // (blocks + 1): the running sums of the counts of blocks
  View<Key> keys;
  View<WindowUser> users;      // as many as keys: at least the last `to` with its users and uses
  View<std::uint32_t> counts;  // (tables)
};
void count_merged_uses(Stream& stream, CountMergedUses const& arguments);
void write_merged_uses(Stream& stream, WriteMergedUses const& arguments);

// Lists the users of rows. Row i gets users[first_user[i]] and those after it, in the ascending order of their ranks,
// with the steps after `step`. REQUIRES: the window has all rows.
struct ListUsers {
  struct WindowTable {
    UsedTable rows{};
    std::uint32_t first_user = 0;  // of the window
  };
  std::span<WindowTable const> tables;
  WindowUsers window;
  Clock step{};
  std::uint32_t valid = 0;  // bits of the steps that the window has, from `step` on
  View<Key const> keys;     // of the rows
  View<std::uint32_t> first_user, user_count;
  View<RowUser> users;  // as many as the window has room for
};
void list_users(Stream& stream, ListUsers const& arguments);

}  // namespace gpups::kernels
