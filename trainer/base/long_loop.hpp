// SPDX-License-Identifier: Apache-2.0
// Loops that may take long: they check StopSignals, and report their progress every 10 seconds.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace gpups::trainer {

// The progress of one loop, for lines such as "reading train.txt: 40 %, 1:20 left" on standard error.
class LongLoop {
 public:
  // what: what the loop does, such as "reading train.txt". total: its length in any unit; 0: unknown. silent: writes
  // nothing, as for all ranks except rank 0.
  LongLoop(std::string what, double total, bool silent);

  // Writes a line if 10 seconds have passed since the last one. done: of the total.
  void update(double done);
  // The same, and returns whether one of StopSignals was received.
  bool stops(double done);
  // The same, and throws Error then: for work before training, which leaves nothing to save.
  void check(double done);

 private:
  std::string what_;
  double total_;
  bool silent_;
  std::chrono::steady_clock::time_point begin_, last_;
};

// Throws Error if one of StopSignals was received. what: as for LongLoop. Cheap.
void throw_if_stopped(std::string_view what);

}  // namespace gpups::trainer
