// SPDX-License-Identifier: Apache-2.0
// Counts what a rank sends and receives, by peer and kind: one thread at a time counts, any thread reads, and no lock
// is taken for either.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/stats.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Which counter some bytes belong to.
using TrafficKind = std::uint64_t TrafficByKind::*;

class TrafficCounters {
 public:
  explicit TrafficCounters(int ranks) : peers_(static_cast<std::size_t>(ranks)) {}

  void sent(Rank to, TrafficKind kind, std::uint64_t bytes);
  void received(Rank from, TrafficKind kind, std::uint64_t bytes);
  // So many bytes of what was counted as control are data of that kind.
  void sent_within(Rank to, TrafficKind kind, std::uint64_t bytes);
  void received_within(Rank from, TrafficKind kind, std::uint64_t bytes);
  // Coding has made this many bytes of what was sent.
  void add_saved(TrafficKind kind, std::uint64_t bytes);
  // So many bytes that were counted as saved have been sent after all; at most all of them.
  void subtract_saved(TrafficKind kind, std::uint64_t bytes);

  // Fills `sent`, `received`, `saved_bytes` and `peers`. Any thread. Each number is one that was right at some time of
  // the call.
  void write(Stats& stats) const;

 private:
  std::vector<PeerTraffic> peers_;  // by rank
  TrafficByKind saved_bytes_;
};

}  // namespace gpups::comm
