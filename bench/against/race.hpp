// SPDX-License-Identifier: Apache-2.0
// A race is a comparison of a kernel with an alternative, or with a plain copy, in one run. Machines are shared with
// other programs, so only the ratio is meaningful.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "gpups/stream.hpp"

namespace gpups::bench {

// One side of a race: a way to do the work.
struct Side {
  std::string name;
  double amount;                      // the work of one call of `run`, in the unit of the race
  std::function<void()> run;          // the timed part; returns when the work is done
  std::function<void()> before = {};  // called before each run, not timed; may be empty
};

// Two ways to do the same work.
struct Race {
  std::string unit;  // the unit of amounts, for instance "keys" or "bytes"
  Side ours, theirs;
};

// A race with its name; `make` allocates and fills the memory of both sides.
struct RaceEntry {
  char const* name;
  Race (*make)(Stream& stream);
};

// Returns all races.
std::span<RaceEntry const> races();

}  // namespace gpups::bench
