// SPDX-License-Identifier: Apache-2.0
// What the library throws. Every message reads: what is wrong (why that is a problem): what to do.
#pragma once

#include <stdexcept>
#include <string>

#include "gpups/types.hpp"

namespace gpups {

// A mistake of the caller or of the environment: wrong options, bad files, no memory, no space.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A rank was lost, left early or sent what cannot be right.
class PeerError : public Error {
 public:
  PeerError(Rank peer, std::string const& message) : Error(message), peer_(peer) {}
  Rank peer() const { return peer_; }

 private:
  Rank peer_;
};

// A gradient was not finite, or its sum left the range of the table's grid. All ranks have refused the step and no
// row has changed.
class GradientError : public Error {
 public:
  using Error::Error;
};

}  // namespace gpups
