// SPDX-License-Identifier: Apache-2.0
// The exceptions of the library. A message has the form: what is wrong (why that is a problem): what to do.
//
//   try {
//     store.wait_ready(batch);
//   } catch (GradientError const& error) {  // the step before was rejected: skip it, or end
//   } catch (PeerError const& error) {      // rank error.peer() is lost: end, and resume from a checkpoint
//   }
#pragma once

#include <stdexcept>
#include <string>

#include "gpups/compiler.hpp"
#include "gpups/types.hpp"

namespace gpups {

// An error of the caller or of the environment, for example invalid options, damaged files, no memory or no disk space.
class GPUPS_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank was lost, ended early, did not answer in time or sent invalid data. Every remaining rank gets this error
// at its next call that needs other ranks. After that, a Store can only be destroyed, and the group's collectives
// cannot be used.
class GPUPS_EXPORT PeerError : public Error {
 public:
  PeerError(Rank peer, std::string const& message) : Error(message), peer_(peer) {}
  // Returns the rank that caused the error.
  Rank peer() const { return peer_; }

 private:
  Rank peer_;
};

// A gradient was not finite, or a rank's sum of gradients was out of the range of the table's grid
// (TableOptions::grid_log2). All ranks reject the step: no row has changed. Training can continue with the next step. A
// Store cannot change a learning rate: to continue with a lower one, create a Store whose tables have a lower
// Optimizer::learning_rate, and restore() a checkpoint.
class GPUPS_EXPORT GradientError : public Error {
 public:
  using Error::Error;
};

}  // namespace gpups
