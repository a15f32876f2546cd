// SPDX-License-Identifier: Apache-2.0
// The exceptions of the library. A message reads: what is wrong (why that is a problem): what to do.
#pragma once

#include <stdexcept>
#include <string>

#include "gpups/types.hpp"

namespace gpups {

// An error of the caller or of the environment: invalid options, bad files, no memory, no disk space.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank was lost, ended early or sent invalid data. peer() is that rank; every remaining rank gets this error.
class PeerError : public Error {
 public:
  PeerError(Rank peer, std::string const& message) : Error(message), peer_(peer) {}
  Rank peer() const { return peer_; }

 private:
  Rank peer_;
};

// A gradient was not finite, or a rank's sum of gradients overflowed the table's grid (TableOptions::grid_log2). All
// ranks reject the step, and no row has changed. Training can go on with the next step.
class GradientError : public Error {
 public:
  using Error::Error;
};

}  // namespace gpups
