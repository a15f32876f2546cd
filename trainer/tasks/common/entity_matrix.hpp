// SPDX-License-Identifier: Apache-2.0
// Reads all rows of a table as one matrix, for ranking and for the search of neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// The number of keys in one look-up of read_rows().
inline constexpr std::size_t kKeysAtOnce = std::size_t{1} << 16;

// Returns the rows of `keys`, (keys, dim), on the store's device, whichever ranks own them. Looks up kKeysAtOnce keys
// at a time. Blocks. Not collective, but every rank must keep its store until all ranks have read their rows.
Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys);

}  // namespace gpups::trainer
