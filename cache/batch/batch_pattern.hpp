// SPDX-License-Identifier: Apache-2.0
// Makes the pattern of a batch: the distinct keys grouped by home, and the entries sorted by key.
#pragma once

#include <memory>
#include <span>

#include "cache/batch/prepared_batch.hpp"

namespace gpups::cache {

// Makes the pattern of a batch that uses `tables`, with `samples` samples, for a store of `ranks` ranks and
// `table_count` tables. Depends only on its arguments. Waits for `stream`. Throws Error for unknown tables, invalid bag
// offsets, too many entries, and arrays on another device.
std::shared_ptr<BatchPattern::Impl> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                      std::size_t samples, int ranks, std::size_t table_count);

// Throw Error for an empty batch, and for a part number that is not below `parts`. call: the public function, for the
// message.
void require_batch(PreparedBatch const& batch, char const* call);
void require_part(std::size_t part, std::size_t parts, char const* call);

}  // namespace gpups::cache
