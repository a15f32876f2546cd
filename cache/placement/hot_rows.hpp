// SPDX-License-Identifier: Apache-2.0
// The rows of a home that ranks use most.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/placement/announced_uses.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A row, the number of its announced uses, and the ranks that use it.
struct RankedRow {
  TableId table{};
  Key key{};
  std::size_t uses = 0;
  std::vector<kernels::RowUser> users{};
};

// Returns the `most` rows of these with the most uses, those with the most uses first. Among rows with equally many
// uses, those with lower tables and keys come first. Reads all rows.
std::vector<RankedRow> wait_hottest_rows(Stream& stream, UsedRows const& used, std::size_t most);

}  // namespace gpups::cache
