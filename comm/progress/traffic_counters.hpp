// SPDX-License-Identifier: Apache-2.0
// Counts the bytes and messages that a rank sends and receives, by peer and kind. One thread at a time counts, any
// thread reads, and neither takes a lock.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/stats.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// The counter to which some bytes belong.
using TrafficKind = std::uint64_t TrafficByKind::*;

// The counters of one rank.
class TrafficCounters {
 public:
  explicit TrafficCounters(int ranks) : peers_(static_cast<std::size_t>(ranks)) {}

  // Counts a message or transfer.
  void sent(Rank to, TrafficKind kind, std::uint64_t bytes);
  void received(Rank from, TrafficKind kind, std::uint64_t bytes);
  // Moves `bytes` of a message from the control counter to that of `kind`.
  void sent_within(Rank to, TrafficKind kind, std::uint64_t bytes);
  void received_within(Rank from, TrafficKind kind, std::uint64_t bytes);
  // Counts bytes that compression has saved.
  void add_saved(TrafficKind kind, std::uint64_t bytes);
  // Subtracts bytes that were counted as saved and then sent after all; at most the counted ones.
  void subtract_saved(TrafficKind kind, std::uint64_t bytes);

  // Writes `sent`, `received`, `saved_bytes` and `peers`. Any thread. Each number was correct at some time during the
  // call.
  void write(Stats& stats) const;

 private:
  std::vector<PeerTraffic> peers_;  // by rank
  TrafficByKind saved_bytes_;
};

}  // namespace gpups::comm
