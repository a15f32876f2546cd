// SPDX-License-Identifier: Apache-2.0
// A kernel timed beside what a user would take instead, or beside a plain copy, in one run: machines are shared, so
// only the ratio means something.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "gpups/stream.hpp"

namespace gpups::bench {

// One of two ways to do the same work.
struct Side {
  std::string name;
  double amount;                      // of work, in the race's unit, that a call of `run` does
  std::function<void()> run;          // timed; ends when the work is done
  std::function<void()> before = {};  // before each run, not timed; empty: nothing
};

struct Race {
  std::string unit;  // what amounts count: "keys", "bytes"
  Side ours, theirs;
};

// A race by name; `make` allocates and fills what both sides use.
struct RaceEntry {
  char const* name;
  Race (*make)(Stream& stream);
};

// All races.
std::span<RaceEntry const> races();

}  // namespace gpups::bench
