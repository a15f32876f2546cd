// SPDX-License-Identifier: Apache-2.0
// Makes the pattern of a batch: distinct keys by owner, and the entries sorted by key. A pure function of its
// arguments.
#pragma once

#include <memory>
#include <span>

#include "cache/prepared.hpp"

namespace gpups::cache {

// Waits for `stream`. Throws Error for parts that make no sense.
std::shared_ptr<BatchPattern::Impl const> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                            std::size_t samples, int ranks, std::size_t table_count);

}  // namespace gpups::cache
