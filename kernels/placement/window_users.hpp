// SPDX-License-Identifier: Apache-2.0
// The users of the rows that are used in a window of steps: a column that takes in the uses of each step once, when the
// window reaches it. Columns of all tables; no function waits, and the numbers of launches do not depend on the numbers
// of tables, ranks and uses.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/choose_owners.hpp"
#include "kernels/placement/used_rows.hpp"

namespace gpups::kernels {

// Returns the bit of a step in RowUser::steps of a window. A window has fewer steps than there are bits.
constexpr std::uint32_t window_bit(Clock step) {
  return std::uint32_t{1} << (static_cast<std::uint64_t>(number(step)) % 32);
}
// Returns the bits of the steps from `first` to the one before `end`.
constexpr std::uint32_t window_bits(Clock first, Clock end) {
  std::uint32_t bits = 0;
  for (Clock step = first; step < end; step = step + 1) bits |= window_bit(step);
  return bits;
}

// The users of rows, in the ascending order of table, key and rank. Table t has counts[t] of them, from a place on that
// the host knows. A user has the bits of its steps.
struct WindowUsers {
  View<Key const> keys;
  View<RowUser const> users;
  View<std::uint32_t const> counts;  // (tables)
};

// The users and uses that one thread merges.
inline constexpr std::uint32_t kMergedOnHost = 512, kMergedOnDevice = 32;
// Returns the number of blocks in which so many users and uses of a table are merged.
inline std::uint32_t merged_blocks(Device device, std::uint32_t count) {
  std::uint32_t const size = device.is_host() ? kMergedOnHost : kMergedOnDevice;
  return (count + size - 1) / size;
}

// Merges the uses of a step into a window, in two passes: each block counts its users, and then writes them after those
// of the blocks before it.
struct MergeUses {
  struct MergedTable {
    std::uint32_t first = 0, most = 0;      // its users, of which there are at most so many
    std::uint32_t first_use = 0, uses = 0;  // in the run
    std::uint32_t to = 0;                   // where its users go
    std::uint32_t first_block = 0;          // it has merged_blocks(most + uses) blocks
  };
  std::span<MergedTable const> tables;
  WindowUsers before;
  std::uint32_t kept = 0;  // bits of the steps that stay in the window; users without any are dropped
  UseRun run;
  std::uint32_t bit = 0;  // of the run's step
};
struct CountMergedUses : MergeUses {
  View<std::uint32_t> counts;  // (blocks)
};
struct WriteMergedUses : MergeUses {
  View<std::uint32_t const> block_at;  // (blocks + 1): the running sums of the counts of blocks
  View<Key> keys;
  View<RowUser> users;
  View<std::uint32_t> counts;  // (tables)
};
void count_merged_uses(Stream& stream, CountMergedUses const& arguments);
void write_merged_uses(Stream& stream, WriteMergedUses const& arguments);

// Lists the users of rows. Row i gets users[first_user[i]] and those after it, in the ascending order of their ranks,
// with the steps after `step`. REQUIRES: the window has all rows.
struct ListUsers {
  struct WindowTable {
    UsedTable rows{};
    std::uint32_t first = 0;  // its users in the window
  };
  std::span<WindowTable const> tables;
  WindowUsers window;
  Clock step{};
  std::uint32_t valid = 0;  // bits of the window's steps, from `step` on
  View<Key const> keys;     // of the rows
  View<std::uint32_t> first_user, user_count;
  View<RowUser> users;  // as many as the window has room for
};
void list_users(Stream& stream, ListUsers const& arguments);

}  // namespace gpups::kernels
