// SPDX-License-Identifier: Apache-2.0
// The residuals of this rank's gradients, for all tables.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/feedback/residual_table.hpp"
#include "cache/rows/table_shard.hpp"

namespace gpups::cache {

// Has one ResidualTable for each table with gradient compression, whoever owns the rows: a row that moves between other
// ranks keeps its residual here. For the thread that makes progress. Functions with `wait` in their names block until
// `stream` is done.
class GradientResiduals {
 public:
  // Returns the residuals of a table; creates an empty ResidualTable at the first call. ranks: of the group, for the
  // capacity. REQUIRES: the table has gradient compression.
  ResidualTable& of(TableId table, Device device, TableOptions const& options, int ranks) {
    auto& rows = rows_[table];
    if (rows == nullptr) {
      auto of_all = options;
      of_all.gradient_compression.capacity_rows *= static_cast<std::size_t>(std::max(ranks - 1, 1));
      rows = std::make_unique<ResidualTable>(device, of_all);
    }
    return *rows;
  }

  // Returns true if of() was called for the table.
  bool has(TableId table) const { return rows_.contains(table); }

  // Flushed rows of one table.
  struct TableFlush {
    TableId table;
    ResidualTable::FlushedRows rows;
  };
  // Returns the residuals that step `step` must send in addition to the gradients of its batch. rank_for: returns the
  // ranks to which rows of a table are sent.
  template <class RankFor>
  std::vector<TableFlush> wait_take_flushed(Stream& stream, Clock step, RankFor const& rank_for) {
    std::vector<TableFlush> all;
    for (auto& [table, rows] : rows_) {
      auto const ranks_for = [&, id = table](std::vector<Key> const& keys) { return rank_for(id, keys); };
      for (auto& flushed : rows->wait_take_flushed(stream, step, send_all_, ranks_for)) {
        all.push_back({table, std::move(flushed)});
      }
    }
    return all;
  }
  // Makes the next step that is not rejected flush all residuals. Call it between steps.
  void send_all() { send_all_ = true; }
  bool sends_all() const { return send_all_; }

  // Ends a step, after its gradients have been encoded. rejected: restores the residuals of before the step.
  void wait_end_step(Stream& stream, bool rejected) {
    for (auto& [table, rows] : rows_) rows->wait_end_step(stream, rejected);
    if (!rejected) send_all_ = false;
  }

  // Drops the residuals of these keys. Call it between steps.
  void wait_drop(Stream& stream, TableId table, View<Key const> keys) {
    if (has(table)) rows_.at(table)->wait_drop(stream, keys);
  }

  // Returns the keys of the residuals of a table. Call it between steps.
  std::vector<Key> wait_keys(Stream& stream, TableId table) const {
    return has(table) ? rows_.at(table)->wait_keys(stream) : std::vector<Key>();
  }

  // Returns all residuals, for a checkpoint. Call it between steps.
  std::vector<ResidualChunk> wait_save(Stream& stream) const {
    std::vector<ResidualChunk> chunks;
    for (auto const& [table, rows] : rows_) {
      for (auto& chunk : rows->wait_save(stream)) chunks.emplace_back(std::move(chunk)).table = table;
    }
    return chunks;
  }

 private:
  std::map<TableId, std::unique_ptr<ResidualTable>> rows_;
  bool send_all_ = false;
};

}  // namespace gpups::cache
