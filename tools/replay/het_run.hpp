// SPDX-License-Identifier: Apache-2.0
// The replay of some steps with the protocol of HET and one kind of cache.
#pragma once

#include "tools/replay/replayed_run.hpp"

namespace gpups::tools {

// The result has no moves, nothing for planning, and HetCounts.
ReplayedRun run_het_replay(ReplayCommand const& options, ReplayBatches const& batches, cache::Eviction eviction,
                           int ranks);

}  // namespace gpups::tools
