// SPDX-License-Identifier: Apache-2.0
// Times ways of summing the same input, in turn, and checks their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/allreduces/way.hpp"

namespace gpups::bench {

// The number and duration of runs.
struct RaceOptions {
  double seconds = 0.2;  // duration for which a way is run after warm-up
  int turns_max = 31;    // turns of each way; short runs are repeated within a turn
  // Sums that are timed as one run. The time of a single short sum would include the difference between the ranks'
  // starts.
  int in_a_row = 1;
  double pause_ms = 0;  // before each run that counts, so that the token bucket of a shaped link is full for all ways
};

// The measurements of a way; times are those of the slowest rank.
struct Measured {
  std::string name;
  std::vector<double> seconds;   // of each run that counts
  std::uint64_t wire_bytes = 0;  // of all ranks in one run, as the network interfaces of this machine count them
  std::uint64_t sent_bytes = 0;  // of all ranks in one run, as gpups counts them; 0 for MPI
  double error_max = 0;          // of any element

  double median_s() const;
};

// Collective, with equal arguments on all ranks. Throws Error if a result is wrong. An entry in `known` is dense, so
// its time does not depend on the density, and is not run again.
std::vector<Measured> wait_race(Job const& job, InputOptions const& input, std::vector<WayEntry> const& entries,
                                RaceOptions const& options, std::vector<Measured> const& known);

}  // namespace gpups::bench
