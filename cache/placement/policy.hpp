// SPDX-License-Identifier: Apache-2.0
// What a placement policy needs to know about a table (docs/decisions/012-rows-that-move.md). The policies themselves
// are kernels/placement/choose_owners.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/table.hpp"
#include "kernels/placement/choose_owners.hpp"

namespace gpups::cache {

using kernels::kPolicyWindow;
using kernels::RowBytes;
using kernels::RowUser;

// Returns the bytes for rows of a table, without the headers of messages. has_plain_keys: as between ranks of a host.
RowBytes row_bytes(TableOptions const& table, bool has_plain_keys = false);

// What a byte between hosts costs, if one within a host costs 1: about the ratio of the speeds of links in a cluster.
inline constexpr std::int64_t kBetweenHosts = 4;
// Within a host, planning where a row is takes longer than sending fewer bytes than these for a use of it.
inline constexpr std::int64_t kFewBytesOfUse = 384;
// Between hosts, keys and routes of rows that are away take about as much as moving them saves.
inline constexpr std::int64_t kFewBytesBetweenHosts = 64;

// Returns StoreOptions::placement_bytes_min, or the usual one if it is -1.
constexpr std::int64_t bytes_min_of(std::int64_t given, bool is_one_host) {
  return given >= 0 ? given : is_one_host ? kFewBytesOfUse : kFewBytesBetweenHosts;
}

// When the rows of a store move while training; equal on all ranks.
struct PlacementRules {
  PlacementPolicy policy = PlacementPolicy::kStatic;  // not kAuto
  std::int64_t window = kPolicyWindow;                // steps whose uses the policy sees
  std::int64_t bytes_min = 0;          // kAdaptive leaves rows at home whose value and gradient take fewer
  std::vector<std::uint32_t> hosts{};  // by rank: ranks of a host are one after another; empty: one host

  // Returns the bytes and the policy for the rows of a table.
  RowBytes bytes_of(TableOptions const& table) const { return row_bytes(table, hosts.empty()); }
  PlacementPolicy policy_of(TableOptions const& table) const;
};

}  // namespace gpups::cache
