// SPDX-License-Identifier: Apache-2.0
// Handles SIGTERM, SIGUSR1, SIGINT and SIGHUP: the training loop checks whether one was received, then stops and saves.
#pragma once

#include <csignal>

namespace gpups::trainer {

// Installs the handlers while the object exists. A second SIGINT ends the program. A SIGHUP that was ignored before,
// for example by nohup, stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals const&) = delete;
  StopSignals& operator=(StopSignals const&) = delete;

  // Returns whether one of the signals was received since the object was created. Any thread.
  static bool received();

 private:
  struct sigaction before_[4];
};

}  // namespace gpups::trainer
