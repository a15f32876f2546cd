// SPDX-License-Identifier: Apache-2.0
// All rows of a table as one matrix, in the order of a dictionary, for ranking and for finding neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// Keys that read_rows() looks up at once.
inline constexpr std::size_t kKeysAtOnce = std::size_t{1} << 16;

// Reads the rows of `keys` wherever they are, a bounded number at a time. Waits. Takes (keys, dim) on the store's
// device. Not collective: every rank must keep its store until all are done.
Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys);

}  // namespace gpups::trainer
