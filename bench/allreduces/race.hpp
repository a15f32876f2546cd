// SPDX-License-Identifier: Apache-2.0
// Times ways of summing the same input, in turn, and checks what each comes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/allreduces/way.hpp"

namespace gpups::bench {

struct RaceOptions {
  double seconds = 0.2;  // that a way is run for, once all are warm
  int turns_max = 31;    // of a way; short runs have several in a turn
  int in_a_row = 1;      // sums that are timed as one run, which says what one of them takes: a short one by itself is
                         // timed with how far ranks are apart at its beginning
  double pause_ms = 0;   // before each run that counts, so that a shaped link's bucket is full for all ways alike
};

// Of a way; times are those of the slowest rank.
struct Measured {
  std::string name;
  std::vector<double> seconds;   // of each run that counts
  std::uint64_t wire_bytes = 0;  // of all ranks, of one run: what the network's interfaces of this machine sent
  std::uint64_t sent_bytes = 0;  // the same as gpups counts it; 0 for MPI
  double error_max = 0;          // of an element

  double median_s() const;
};

// Collective; the same on all ranks. Throws Error where a result is wrong. An entry that `known` has is dense, takes as
// long at any density, and is not run again.
std::vector<Measured> wait_race(Job const& job, InputOptions const& input, std::vector<WayEntry> const& entries,
                                RaceOptions const& options, std::vector<Measured> const& known);

}  // namespace gpups::bench
