// SPDX-License-Identifier: Apache-2.0
// The most used rows of a home, among those that batches use in one step.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/placement/key_uses.hpp"

namespace gpups::cache {

// A row, the number of its announced uses, and the ranks that use it.
struct RankedRow {
  TableId table{};
  Key key{};
  std::size_t uses = 0;
  std::vector<RowUser> users{};
};

// Keeps the rows with the most uses. Cost of add(): an addition for each user of a key, and a copy of the users of each
// kept row.
class HotRows {
 public:
  // capacity: number of rows that are kept, at least 1.
  explicit HotRows(std::size_t capacity) : capacity_(capacity) {}

  void clear() { rows_.clear(); }
  // Adds rows of a table. Among rows with equally many uses, those with lower tables and keys are kept.
  void add(TableId table, KeyUses::UsedKeys const& used);
  // Returns the rows, those with the most uses first.
  std::vector<RankedRow> sorted() const;

 private:
  std::size_t capacity_;
  std::vector<RankedRow> rows_;  // a heap, with the least used row first
};

}  // namespace gpups::cache
