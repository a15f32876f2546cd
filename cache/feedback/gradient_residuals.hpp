// SPDX-License-Identifier: Apache-2.0
// The residuals of this rank's gradients, for all owners and tables.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/feedback/residual_table.hpp"
#include "cache/rows/table_shard.hpp"

namespace gpups::cache {

// Has one ResidualTable for each owner and each table with gradient compression. For the thread that makes progress.
// Functions with `wait` in their names block until `stream` is done.
class GradientResiduals {
 public:
  // Returns the residuals for rows of `owner`; creates an empty ResidualTable at the first call. REQUIRES: the table
  // has gradient compression.
  ResidualTable& of(Rank owner, TableId table, Device device, TableOptions const& options) {
    auto& rows = rows_[{owner, table}];
    if (rows == nullptr) rows = std::make_unique<ResidualTable>(device, options);
    return *rows;
  }

  // Returns true if of() was called for these arguments.
  bool has(Rank owner, TableId table) const { return rows_.contains({owner, table}); }

  // Flushed rows of one table.
  struct TableFlush {
    TableId table;
    ResidualTable::FlushedRows rows;
  };
  // Returns the residuals that step `step` must send to `owner` in addition to the gradients of its batch.
  std::vector<TableFlush> wait_take_flushed(Stream& stream, Rank owner, Clock step) {
    std::vector<TableFlush> all;
    for (auto& [of, rows] : rows_) {
      if (of.first != owner) continue;
      for (auto& flushed : rows->wait_take_flushed(stream, step, send_all_))
        all.push_back({of.second, std::move(flushed)});
    }
    return all;
  }
  // Makes the next step that is not rejected flush all residuals. Call it between steps.
  void send_all() { send_all_ = true; }
  bool sends_all() const { return send_all_; }

  // Ends a step, after the gradients of all owners have been encoded. rejected: restores the residuals of before the
  // step.
  void wait_end_step(Stream& stream, bool rejected) {
    for (auto& [of, rows] : rows_) rows->wait_end_step(stream, rejected);
    if (!rejected) send_all_ = false;
  }

  // Drops the residuals of these keys, of all owners. Call it between steps.
  void wait_drop(Stream& stream, TableId table, View<Key const> keys) {
    for (auto& [of, rows] : rows_) {
      if (of.second == table) rows->wait_drop(stream, keys);
    }
  }

  // Returns the keys of the residuals of a table, of all owners. Call it between steps.
  std::vector<Key> wait_keys(Stream& stream, TableId table) const {
    std::vector<Key> all;
    for (auto const& [of, rows] : rows_) {
      if (of.second != table) continue;
      auto const keys = rows->wait_keys(stream);
      all.insert(all.end(), keys.begin(), keys.end());
    }
    return all;
  }

  // Returns all residuals, for a checkpoint. Call it between steps.
  std::vector<ResidualChunk> wait_save(Stream& stream) const {
    std::vector<ResidualChunk> chunks;
    for (auto const& [of, rows] : rows_) {
      auto& chunk = chunks.emplace_back(rows->wait_save(stream));
      chunk.peer = of.first;
      chunk.table = of.second;
    }
    return chunks;
  }

 private:
  std::map<std::pair<Rank, TableId>, std::unique_ptr<ResidualTable>> rows_;
  bool send_all_ = false;
};

}  // namespace gpups::cache
