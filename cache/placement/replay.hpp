// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send for the rows of one table with a placement policy, from the keys of their batches,
// without ranks and rows. Decides as homes do, so it moves the rows that a Store moves.
//
//   PlacementReplay replay({.policy = PlacementPolicy::kAdaptive, .ranks = 4, .bytes = bytes});
//   for each step: replay.announce(rank, step + lookahead, keys) for each rank; replay.advance();
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/placement/key_uses.hpp"
#include "cache/placement/policy.hpp"

namespace gpups::cache {

// What ranks send in a step, all ranks together.
struct ReplayedStep {
  std::uint64_t keys = 0;     // distinct keys of batches, over ranks
  std::uint64_t reads = 0;    // of these, rows whose values are sent
  std::uint64_t updates = 0;  // rows whose gradients are sent
  std::uint64_t moves = 0;    // rows that move
  double key_bytes = 0;       // of intents, forwards and routes, with keys in dictionaries
  // Bytes of values, gradients and moved rows, by the rank that receives them: from its own node, and from others.
  std::vector<double> from_node, from_others;
};

class PlacementReplay {
 public:
  struct ReplayOptions {
    PlacementPolicy policy = PlacementPolicy::kAdaptive;
    int ranks = 0;
    int ranks_of_node = 1;
    RowBytes bytes{};
  };
  explicit PlacementReplay(ReplayOptions const& options) : options_(options) {}

  // Adds a rank's batch of a step that is not replayed yet. keys: distinct.
  void announce(Rank reader, Clock step, std::span<Key const> keys);
  // Replays the next step, from 0 on. Rows move from the third step on, as in a Store.
  ReplayedStep advance();

  // Returns the number of rows that each rank owns, of those that were used.
  std::vector<std::uint64_t> rows_owned() const;

 private:
  struct AnnouncedKeys {
    Rank reader{};
    std::vector<Key> keys;
  };
  Rank home_of(Key key) const;
  void count(Key key, Rank before, Rank in_step, std::span<RowUser const> users, ReplayedStep& step) const;

  ReplayOptions options_;
  Clock next_{};
  std::map<Clock, std::vector<AnnouncedKeys>> announced_;  // that the policy does not see yet
  KeyUses uses_;
  std::unordered_map<Key, Rank> owners_;  // of rows that were used
};

}  // namespace gpups::cache
