// SPDX-License-Identifier: Apache-2.0
// Checks the gradients that a caller gives to Store::push().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "cache/rows/table_shard.hpp"
#include "gpups/store.hpp"
#include "gpups/stream.hpp"

namespace gpups::cache {

// Throws Error if the arrays do not fit the part, or if the stream cannot reach them. options: of the part's table.
void check_gradients(Stream const& stream, PreparedPart const& part, TableOptions const& options,
                     TableGradients const& gradients);

// Checks the source indices of all parts before they are used. On the host it throws Error for an invalid index. On a
// GPU it queues the check, and the round rejects the step if it finds an invalid index.
void check_source_numbers(Stream& stream, PreparedBatch::Impl& batch, std::span<TableGradients const> gradients,
                          std::vector<std::unique_ptr<TableShard>> const& tables);

}  // namespace gpups::cache
