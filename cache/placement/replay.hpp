// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send for the rows of tables with a placement policy, from the keys of their batches,
// without ranks and rows. Decides as homes do, so it moves the rows that a Store moves. All rows are at home at first.
//
//   PlacementReplay replay({.policy = PlacementPolicy::kAdaptive, .ranks = 4, .lookahead = 10, .tables = {{bytes}}});
//   for each step: replay.announce(rank, step, table, keys) for each rank and the steps before replay.announced_end();
//                  replay.advance();
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/placement/announced_uses.hpp"
#include "cache/placement/policy.hpp"
#include "cache/placement/replica_leases.hpp"

namespace gpups::cache {

// What ranks send in a step, all ranks together.
struct ReplayedStep {
  std::uint64_t keys = 0;     // distinct keys of batches, over ranks
  std::uint64_t leased = 0;   // of these, keys whose rows are read from replicas as they are
  std::uint64_t reads = 0;    // of the others, rows whose values are sent
  std::uint64_t updates = 0;  // rows whose gradients are sent
  std::uint64_t moves = 0;    // rows that move
  double value_bytes = 0, gradient_bytes = 0, move_bytes = 0;
  double key_bytes = 0;  // of intents, forwards and routes, with keys in dictionaries
  // Bytes of values, gradients and moved rows, by the rank that receives them: from its own node, and from others.
  std::vector<double> from_node, from_others;
};

// The largest numbers that placement has had to keep for a table, by rank.
struct KeptRows {
  std::vector<std::uint64_t> owned;     // rows, of those that were used
  std::vector<std::uint64_t> replicas;  // rows of other owners that a step uses
  std::vector<std::uint64_t> away;      // rows of this home that other ranks own
  std::vector<std::uint64_t> uses;      // that are announced to this home
  std::vector<std::uint64_t> leases;    // of replicas
};

class PlacementReplay {
 public:
  struct ReplayedTable {
    RowBytes bytes{};
    bool moves = true;  // false: its rows stay at home with every policy, because they are narrow
  };
  struct ReplayOptions {
    PlacementPolicy policy = PlacementPolicy::kAdaptive;
    int ranks = 0;
    int ranks_of_node = 1;
    std::int64_t between_nodes = 1;  // what a byte between nodes costs for the policy, if one within a node costs 1
    std::int64_t lookahead = 4;      // steps that batches are prepared ahead
    std::int64_t window = kPolicyWindow;  // steps whose uses the policy sees
    std::int64_t staleness = 0;           // see StoreOptions; leases are not limited
    std::vector<ReplayedTable> tables{};
  };
  explicit PlacementReplay(ReplayOptions options);

  // Returns the first step whose batches homes do not know, or do not consider, when they plan the next step.
  Clock announced_end() const;
  // Adds the rows of a table that a rank's batch uses, for a step that is not replayed yet. keys: distinct. If several
  // parts of a batch use a row, it counts once. With staleness, announce the batches of a rank in the order of their
  // steps.
  void announce(Rank reader, Clock step, std::size_t table, std::span<Key const> keys);
  // Replays the next step, from 0 on. Rows move from the third step on, as in a Store.
  ReplayedStep advance();

  // Returns the number of rows that each rank owns, of those that were used, over all tables.
  std::vector<std::uint64_t> rows_owned() const;
  // Returns the processor time of what homes do on the host: keeping announced uses, and choosing owners. Homes do
  // more: they read the keys of intents, and write routes and forwards. With the policy `static` they do none of this.
  double planning_seconds() const { return static_cast<double>(planning_) / CLOCKS_PER_SEC; }
  KeptRows const& most_kept(std::size_t table) const { return tables_[table].most; }

 private:
  struct RowState {
    Rank owner{};
    bool used = false;  // in a step that is replayed
  };
  struct TableState {
    std::unordered_map<Key, RowState> rows;
    std::map<Rank, ReplicaLeases> leases;   // by reader
    std::map<Clock, std::uint64_t> leased;  // leased uses of steps that are not replayed
    KeptRows now, most;
  };

  Rank home_of(Key key) const;
  std::vector<Key> without_leased(TableState& table, Rank reader, Clock step, std::span<Key const> keys);
  void begin(TableState& table, ReplayedStep& step);
  void replay(std::size_t table, UsedRows const& used, ReplayedStep& step);
  void keep(TableState& table, Key key, RowState& row, Rank owner) const;
  void count(std::size_t table, Key key, Rank before, Rank in_step, std::span<RowUser const> users, ReplayedStep& step);

  ReplayOptions options_;
  Clock next_{};
  std::vector<TableState> tables_;
  Stream host_;
  Array<std::uint32_t> nodes_;  // of ranks
  AnnouncedUses uses_;
  std::clock_t planning_ = 0;
};

}  // namespace gpups::cache
