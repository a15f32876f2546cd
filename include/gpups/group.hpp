// SPDX-License-Identifier: Apache-2.0
// The ranks of a job and how they reach each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpups/types.hpp"

namespace gpups {

// How badly the simulated network treats its messages. Same seed, same run.
struct Simulation {
  std::uint64_t seed = 0;
  double delay_ms_max = 10;         // each message waits a random time up to this, in simulated time
  double stall_probability = 0.05;  // that a rank does nothing for up to `stall_ms_max` after a turn, or as it waits
  double stall_ms_max = 50;
};

// One rank's membership of a group. Copies are the same membership. A Store takes one, and one only.
class Group {
 public:
  // A group of one.
  static Group alone();

  // `ranks` memberships for threads of this process, in rank order; each is for a thread of its own.
  static std::vector<Group> threads(int ranks);

  // The same over a simulated network, for tests. Use run_ranks() to run the ranks.
  static std::vector<Group> simulated(int ranks, Simulation const& options);

  Rank rank() const;
  int size() const;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Runs `body` once for each of the memberships, each in a thread of its own, and waits for all of them. Ranks of a
// simulated group take turns, one at a time, in an order that only the seed decides. Where bodies throw, the first
// cause is thrown again: a rank that fails makes the others' next wait fail with PeerError, which is never preferred.
void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body);

}  // namespace gpups
