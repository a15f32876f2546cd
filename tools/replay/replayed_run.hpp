// SPDX-License-Identifier: Apache-2.0
// The replay of some steps with one policy and one number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/placement/replay.hpp"
#include "tools/replay/batches.hpp"
#include "tools/replay/options.hpp"

namespace gpups::tools {

// The largest memory of a rank in bytes, for each use.
struct PlacementMemory {
  std::size_t rows = 0;       // rows of its own, with optimizer state
  std::size_t replicas = 0;   // rows of other owners: those that are kept between steps, and those of a step
  std::size_t directory = 0;  // owners of rows of this home that are away
  std::size_t uses = 0;       // announced uses of rows of this home
};

// What only a replay of HET has.
struct HetCounts {
  cache::Eviction eviction{};
  double plain_bytes = 0;  // that ranks without caches would have sent
  std::size_t memory = 0;  // the largest memory of a rank's caches in bytes
};

struct ReplayedRun {
  std::string policy;
  bool plans = false;  // homes choose owners
  int ranks = 0;
  std::int64_t steps = 0;                                          // that are counted
  cache::ReplayedStep sent;                                        // in all of them
  std::vector<double> received;                                    // bytes, by rank
  double network_bytes = 0;                                        // of these, from other nodes
  double node_seconds = 0, network_seconds = 0, link_seconds = 0;  // of the slowest rank of each step, summed
  double planning_seconds = 0;                                     // of all homes, on one core
  std::vector<std::uint64_t> rows_owned;                           // by rank
  PlacementMemory memory;
  std::optional<HetCounts> het;
};

// Returns the number of steps to replay, with those that are not counted. Throws Error if there are too few batches.
std::int64_t steps_to_replay(ReplayCommand const& options, ReplayBatches const& batches, int ranks);

// Adds what was sent in a step that is counted.
void add_step(ReplayCommand const& options, cache::ReplayedStep const& sent, ReplayedRun& run);

// Returns the bytes of rows that a rank owns, and of replicas. Key dictionaries are not counted.
std::size_t bytes_of_rows(TableOptions const& table, std::uint64_t rows, std::uint64_t replicas, int ranks);

ReplayedRun run_replay(ReplayCommand const& options, ReplayBatches const& batches, PlacementPolicy policy, int ranks);

}  // namespace gpups::tools
