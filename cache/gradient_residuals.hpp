// SPDX-License-Identifier: Apache-2.0
// What this rank holds back of its gradients, for each other rank and table.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/residual_table.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

class GradientResiduals {
 public:
  // owner: of the rows. REQUIRES: the table holds gradients back.
  ResidualTable& of(Rank owner, TableId table, Device device, TableOptions const& options) {
    auto& rows = rows_[{owner, table}];
    if (rows == nullptr) rows = std::make_unique<ResidualTable>(device, options);
    return *rows;
  }

  // The rows that a step sends to an owner although its batch need not name them.
  struct TableFlush {
    TableId table;
    ResidualTable::FlushedRows rows;
  };
  std::vector<TableFlush> wait_take_flushed(Stream& stream, Rank owner, Clock step) {
    std::vector<TableFlush> all;
    for (auto& [of, rows] : rows_) {
      if (of.first != owner) continue;
      for (auto& flushed : rows->wait_take_flushed(stream, step, send_all_))
        all.push_back({of.second, std::move(flushed)});
    }
    return all;
  }
  // Between steps: the next one that is not rejected sends everything.
  void send_all() { send_all_ = true; }
  bool sends_all() const { return send_all_; }

  // A step is over in which this rank has taken rows for all owners. rejected: it has changed nothing.
  void wait_end_step(Stream& stream, bool rejected) {
    for (auto& [of, rows] : rows_) rows->wait_end_step(stream, rejected);
    if (!rejected) send_all_ = false;
  }

  void wait_drop(Stream& stream, TableId table, View<Key const> keys) {
    for (auto& [of, rows] : rows_) {
      if (of.second == table) rows->wait_drop(stream, keys);
    }
  }

  // Everything that is held back, between steps.
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
