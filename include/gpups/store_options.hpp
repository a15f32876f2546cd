// SPDX-License-Identifier: Apache-2.0
// The options of a Store.
//
//   Store store(group, {.device = Device::gpu(0), .placement = PlacementPolicy::kAdaptive});
#pragma once

#include <cstdint>

#include "gpups/device.hpp"
#include "gpups/key_format.hpp"
#include "gpups/placement.hpp"

namespace gpups {

// Options of a Store.
struct StoreOptions {
  Device device{};         // of the rows, and of all arrays that are given to the Store
  int threads = 0;         // host threads of this rank; 0: an even share of the cores of the process
  std::uint64_t seed = 1;  // seed of initial values; equal on all ranks
  // The most rows of other ranks that this rank keeps between the steps that use them, as a fraction of the rows of its
  // own (TableOptions::expected_rows, or the rows that there are, if they are more), 0 .. 1. If the rows of four steps
  // are more, these are kept. 0: none. Does not change results.
  double replica_fraction = 0.1;
  // When rows move to the ranks that use them, while training; equal on all ranks.
  PlacementPolicy placement = PlacementPolicy::kAuto;
  // Steps that PlacementPolicy::kAdaptive considers, 1 .. 16; equal on all ranks. If batches are prepared at least
  // placement_window + 1 steps ahead, owners do not depend on time. Stats::late_batches counts the others.
  int placement_window = 16;
  // kAdaptive leaves rows at their homes whose value and gradient together have fewer bytes, because planning takes
  // longer than sending them. -1: 384 if all ranks are on one host, else 64. Equal on all ranks, as the next one.
  std::int64_t placement_bytes_min = -1;
  int ranks_per_host = 0;  // ranks with fast links, one after another; 0: those that are on one host
  // Bounded staleness, in steps; equal on all ranks. 0: all ranks together compute what one rank would. Above 0, reads
  // of rows that other ranks own may be behind by as many steps, and gradients of these rows may wait as long, or until
  // this rank's next batch. Copies that are read so take at most half of replica_fraction. The bounds hold if batches
  // are prepared in the order of their steps.
  std::int64_t staleness = 0;
  KeyFormat key_format = KeyFormat::kAuto;  // of the keys that this rank sends
  // Seconds without progress after which a call that waits for another rank throws PeerError, at most 1e9. The limit
  // for collectives of the Group is Group::set_wait_timeout_s().
  double wait_timeout_s = 300;
};

}  // namespace gpups
