// SPDX-License-Identifier: Apache-2.0
// The memory that a table needs on a rank.
#pragma once

#include <cstddef>
#include <vector>

#include "gpups/stats.hpp"
#include "gpups/table.hpp"

namespace gpups::cache {

// Returns the memory of a shard with `rows` rows and `replicas` replicas in a group of `ranks` ranks, one line for each
// use; see Store::memory_plan(). leases: the most replicas whose gradients wait. rows_move: while training, by a
// placement policy.
std::vector<MemoryPlanLine> memory_plan(TableOptions const& options, std::size_t rows, std::size_t replicas,
                                        std::size_t leases, int ranks, bool rows_move);

}  // namespace gpups::cache
