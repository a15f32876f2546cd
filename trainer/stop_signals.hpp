// SPDX-License-Identifier: Apache-2.0
// Turns SIGTERM, SIGUSR1, SIGINT and SIGHUP into a question that the training loop asks: should we stop and save?
#pragma once

#include <csignal>

namespace gpups::trainer {

// Handlers are in place while the object lives. A second SIGINT ends the program as it would without us; a SIGHUP that
// was ignored before, as by nohup, stays so.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals const&) = delete;
  StopSignals& operator=(StopSignals const&) = delete;

  // Whether one came in the life of the object. Any thread.
  static bool received();

 private:
  struct sigaction before_[4];
};

}  // namespace gpups::trainer
