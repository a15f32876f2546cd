// SPDX-License-Identifier: Apache-2.0
// What a Store checks before it begins, and before it uses what a caller gives it: options, the memory that they need,
// and gradients.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "cache/rows/table_shard.hpp"
#include "gpups/stats.hpp"
#include "gpups/store.hpp"
#include "gpups/stream.hpp"
#include "gpups/table.hpp"

namespace gpups::cache {

// Throw Error with the option, its value and the valid values. ranks: number of ranks of the store.
void check_store(StoreOptions const& options);
void check_table(TableOptions const& options, int ranks);

// Throws Error if the arrays do not fit the part, or if the stream cannot reach them. options: of the part's table.
void check_gradients(Stream const& stream, PreparedPart const& part, TableOptions const& options,
                     TableGradients const& gradients);

// Checks the source indices of all parts before they are used. On the host it throws Error for an invalid index. On a
// GPU it queues the check, and the round rejects the step if it finds an invalid index.
void check_source_numbers(Stream& stream, PreparedBatch::Impl& batch, std::span<TableGradients const> gradients,
                          std::vector<std::unique_ptr<TableShard>> const& tables);

// Returns the memory of a shard with `rows` rows and `replicas` replicas in a group of `ranks` ranks, one line for each
// use; see Store::memory_plan(). leases: the most replicas whose gradients wait. dictionaries: the number of ranks with
// which keys are exchanged by key dictionaries. rows_move: while training, by a placement policy.
std::vector<MemoryPlanLine> memory_plan(TableOptions const& options, std::size_t rows, std::size_t replicas,
                                        std::size_t leases, int ranks, std::size_t dictionaries, bool rows_move);

}  // namespace gpups::cache
