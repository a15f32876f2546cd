// SPDX-License-Identifier: Apache-2.0
// Makes the pattern of a batch: distinct keys by owner, and the entries sorted by key. A pure function of its
// arguments.
#pragma once

#include <memory>
#include <span>

#include "cache/prepared_batch.hpp"

namespace gpups::cache {

// Waits for `stream`. Throws Error for parts that make no sense.
std::shared_ptr<BatchPattern::Impl> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                      std::size_t samples, int ranks, std::size_t table_count);

// Throw Error for an empty batch, and for a part that a batch of so many does not have.
void require_batch(PreparedBatch const& batch, char const* call);
void require_part(std::size_t part, std::size_t parts, char const* call);

}  // namespace gpups::cache
