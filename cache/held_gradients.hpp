// SPDX-License-Identifier: Apache-2.0
// What this rank holds back of its gradients, for each other rank and table.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/held_rows.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

class HeldGradients {
 public:
  // owner: of the rows. REQUIRES: the table holds gradients back.
  HeldRows& of(Rank owner, TableId table, Device device, TableOptions const& options) {
    auto& rows = rows_[{owner, table}];
    if (rows == nullptr) rows = std::make_unique<HeldRows>(device, options);
    return *rows;
  }

  // The rows that a step sends to an owner although its batch need not name them.
  struct Late {
    TableId table;
    HeldRows::Late rows;
  };
  std::vector<Late> wait_take_late(Stream& stream, Rank owner, Clock step) {
    std::vector<Late> all;
    for (auto& [of, rows] : rows_) {
      if (of.first != owner) continue;
      for (auto& late : rows->wait_take_late(stream, step, send_all_)) all.push_back({of.second, std::move(late)});
    }
    return all;
  }
  // Between steps: the next one that is not refused sends everything.
  void send_all() { send_all_ = true; }
  bool sends_all() const { return send_all_; }

  // A step is over in which this rank has taken rows for all owners. refused: it has changed nothing.
  void wait_end_step(Stream& stream, bool refused) {
    for (auto& [of, rows] : rows_) rows->wait_end_step(stream, refused);
    if (!refused) send_all_ = false;
  }

  void wait_drop(Stream& stream, TableId table, View<Key const> keys) {
    for (auto& [of, rows] : rows_) {
      if (of.second == table) rows->wait_drop(stream, keys);
    }
  }

  // Everything that is held back, between steps.
  std::vector<HeldPiece> wait_save(Stream& stream) const {
    std::vector<HeldPiece> pieces;
    for (auto const& [of, rows] : rows_) {
      auto& piece = pieces.emplace_back(rows->wait_save(stream));
      piece.peer = of.first;
      piece.table = of.second;
    }
    return pieces;
  }

 private:
  std::map<std::pair<Rank, TableId>, std::unique_ptr<HeldRows>> rows_;
  bool send_all_ = false;
};

}  // namespace gpups::cache
